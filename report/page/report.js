// Draws the charts in the page's colours, and filters the trajectories.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const charts = read("charts");
  const themes = read("themes");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const actions = { export: true, source: false, compiled: false, editor: false };
  const views = new Map();
  let drawing = 0;

  async function draw() {
    const turn = ++drawing;
    const config = themes[dark.matches ? "dark" : "light"];
    document.documentElement.dataset.drawn = "no";
    for (const place of document.querySelectorAll(".chart")) {
      views.get(place)?.finalize();
      try {
        const options = { config, actions, ast: true, renderer: "svg" };
        views.set(place, await vegaEmbed(place, charts[place.id], options));
      } catch (error) {
        place.textContent = `This picture could not be drawn (${error.message}); its numbers are below.`;
        console.error(error);
      }
      await new Promise((go) => setTimeout(go));
      if (turn !== drawing) return;
    }
    document.documentElement.dataset.drawn = "yes";
  }

  function filters() {
    const form = document.querySelector(".filters");
    if (!form) return;
    const cards = [...document.querySelectorAll(".trajectory")];
    const selects = [...form.querySelectorAll("select")];
    const values = (card, name) => card.dataset[name].split("|");
    for (const select of selects) {
      const found = new Set(cards.flatMap((card) => values(card, select.name)));
      const order = (a, b) => a.localeCompare(b, "en", { numeric: true });
      for (const value of [...found].sort(order)) select.add(new Option(value, value));
    }
    const show = () => {
      let shown = 0;
      for (const card of cards) {
        card.hidden = selects.some((s) => s.value && !values(card, s.name).includes(s.value));
        shown += !card.hidden;
      }
      form.querySelector("output").textContent = `${shown} of ${cards.length}`;
    };
    form.addEventListener("change", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    show();
  }

  filters();
  draw();
  dark.addEventListener("change", draw);
})();
