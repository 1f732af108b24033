// Makes the table of policies sortable and filterable. Without it the table is still there, with all its links.
(function () {
  "use strict";
  const form = document.querySelector(".policy-filter");
  const table = document.querySelector(".policy-table table");
  if (!form || !table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const names = heads.map((head) => head.textContent.trim());
  const said = form.querySelector("output");

  function text(row, column) {
    return row.cells[column].textContent.trim();
  }

  function value(row, column) {
    const number = Number(text(row, column).replace(/,/g, ""));
    return Number.isNaN(number) ? null : number;
  }

  function sort(column) {
    const head = heads[column];
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const numeric = rows.some((row) => value(row, column) !== null);
    const sign = up ? 1 : -1;
    const ordered = rows.slice().sort((one, other) => {
      if (!numeric) return sign * text(one, column).localeCompare(text(other, column));
      const a = value(one, column), b = value(other, column);
      if (a === null || b === null) return (a === null) - (b === null); // dashes stay at the end
      return sign * (a - b);
    });
    body.append(...ordered);
  }

  function filter() {
    const words = form.querySelector("input[type=search]").value.toLowerCase().split(/\s+/).filter(Boolean);
    const boxes = Array.from(form.querySelectorAll("input[type=checkbox]:checked"));
    let shown = 0;
    rows.forEach((row) => {
      const all = row.textContent.toLowerCase();
      const fits = words.every((word) => all.includes(word)) &&
        boxes.every((box) => text(row, names.indexOf(box.dataset.column)).split(", ").includes(box.dataset.word));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    said.textContent = shown + " of " + rows.length;
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent.trim();
    button.addEventListener("click", () => sort(column));
    head.replaceChildren(button);
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
