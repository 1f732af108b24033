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

  async function settings() {
    const response = await fetch(api);
    const found = await response.json();
    if (!response.ok) throw new Error(found.error);
    return found;
  }

  const label = (arm) => (typeof arm === "string" ? arm : JSON.stringify(arm));
  const number = (text) => (text === "" ? null : Number(text));
  // By the names that Python and HTTP have: the question, the method, the path and the message.
  const actions = {
    fix: (form, arms) => [`Play “${label(arms[form.get("arm")])}” only, until it is released?`, "POST", "/fix", { arm: arms[form.get("arm")] }],
    release: () => ["Let the policy choose again?", "POST", "/release"],
    add_arm: (form, arms) => {
      const like = form.get("like") === "" ? null : arms[form.get("like")], mean = number(form.get("mean")), worth = number(form.get("worth"));
      const past = like == null ? (mean == null ? "It is tried at once." : `It begins with a mean of ${mean}, worth ${worth} observations.`) : `It begins like “${label(like)}”.`;
      return [`Add the arm “${form.get("name")}”? ${past}`, "POST", "/arms", { arm: form.get("name"), like, mean, worth }];
    },
    retire_arm: (form, arms) => [`Never choose “${label(arms[form.get("arm")])}” again?`, "POST", "/arms/retire", { arm: arms[form.get("arm")] }],
    half_life: (form) => [`Set the half-life to ${form.get("half_life")}? The whole journal is learned again with it.`, "PATCH", "", { half_life: form.get("half_life") === "none" ? null : form.get("half_life") }],
    erase: (form) => [`Erase the id “${form.get("id")}”? A keyed hash takes its place and its context is removed. This cannot be undone.`, "DELETE", `/decisions/${encodeURIComponent(form.get("id"))}`],
    archive: () => ["Archive this bandit? It decides no more and leaves all lists. This can be undone within a day.", "DELETE", ""],
    unarchive: () => ["Let this bandit decide again?", "POST", "/unarchive"],
  };

  // What the forms offer follows from the settings after a change.
  function offer(bandit) {
    for (const select of document.querySelectorAll("#admin select")) {
      const chosen = select.value, none = [...select.options].filter((option) => option.value === "");
      const words = none.length ? "like " : "";
      select.replaceChildren(...none, ...bandit.arms.map((arm, place) => new Option(words + label(arm), String(place))));
      if (chosen < bandit.arms.length) select.value = chosen;
    }
    for (const place of document.querySelectorAll("[data-archived]")) place.hidden = (place.dataset.archived === "yes") === (bandit.archived == null);
  }

  for (const form of document.querySelectorAll("#admin form")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const [text, method, path, body] = actions[form.dataset.action](new FormData(form), (await settings()).arms);
        if (!(await sure(text))) return;
        const { erased } = await send(method, path, { ...body, who: "page" });
        if (erased === false) throw new Error("This id had been erased before; nothing was changed.");
        offer(await settings());
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
