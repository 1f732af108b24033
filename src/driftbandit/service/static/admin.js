"use strict";
// Changes by an admin: each asks for confirmation and shows its record in the journal.
function driftAdmin(api, say, done) {
  const dialog = document.getElementById("confirm");

  function sure(text) {
    document.getElementById("confirm-text").textContent = text;
    dialog.returnValue = "no";
    dialog.showModal();
    return new Promise((answer) => dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true }));
  }

  async function send(method, path, body) {
    const response = await fetch(api + path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    const found = await response.json();
    if (!response.ok) throw new Error(found.error);
    return found;
  }

  async function armsNow() {
    const response = await fetch(api);
    const found = await response.json();
    if (!response.ok) throw new Error(found.error);
    return found;
  }

  const actions = {
    fix: async (form, arms) => [`Play “${label(arms, form)}” only, until it is released?`, "POST", "/fix", { arm: arms[form.get("arm")], who: "page" }],
    release: async () => ["Let the policy choose again?", "POST", "/release", { who: "page" }],
    add_arm: async (form) => [`Add the arm “${form.get("name")}”? It is tried at once.`, "POST", "/arms", { arm: form.get("name"), who: "page" }],
    retire_arm: async (form, arms) => [`Never choose “${label(arms, form)}” again?`, "POST", "/arms/retire", { arm: arms[form.get("arm")], who: "page" }],
    half_life: async (form) => [`Set the half-life to ${form.get("half_life")}? The whole journal is learned again with it.`, "PATCH", "", { half_life: form.get("half_life") === "none" ? null : form.get("half_life"), who: "page" }],
  };
  const label = (arms, form) => { const arm = arms[form.get("arm")]; return typeof arm === "string" ? arm : JSON.stringify(arm); };

  function choosers(arms) {
    for (const select of document.querySelectorAll("#admin select")) {
      const chosen = select.value;
      select.replaceChildren(...arms.map((arm, place) => new Option(typeof arm === "string" ? arm : JSON.stringify(arm), String(place))));
      if (chosen < arms.length) select.value = chosen;
    }
  }

  for (const form of document.querySelectorAll("#admin form")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const [text, method, path, body] = await actions[form.dataset.action](new FormData(form), (await armsNow()).arms);
        if (!(await sure(text))) return;
        const found = await send(method, path, body);
        choosers(found.arms);
        const changes = await (await fetch(`${api}/changes`)).json();
        const last = changes.changes[changes.changes.length - 1];
        say(`Written to the journal: ${last.what} by ${last.who}, ${new Date(last.at / 1e3).toLocaleString()}.`);
        form.reset();
        done();
      } catch (error) {
        say(error.message, true);
      }
    });
  }
}
