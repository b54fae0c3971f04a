
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const select = document.getElementById("source");
  const list = document.getElementById("list");
  const article = document.getElementById("episode");
  const tip = document.getElementById("tip");
  if (!select) return;

  const STRONGEST = 2; // nats: a gap as large as this has the full colour
  const minus = (text) => text.replace("-", "\u2212");
  const fixed = (value, digits = 2) => (value === null || value === undefined ? "\u2013" : minus(value.toFixed(digits)));
  const share = (value) => (100 * value).toFixed(0) + "%";
  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
  const strength = (gap) => Math.sqrt(Math.min(1, Math.abs(gap) / STRONGEST));
  const gate = (gap) => 1 / (1 + Math.exp(-data.beta * gap));
  const visible = (text) => text.replace(/ /g, "\u2423").replace(/\n/g, "\u23CE").replace(/\t/g, "\u21E5") || "(empty)";

  // Everything a model or an environment wrote enters the page as text, never as markup.
  function element(name, options = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key === "class") node.className = value;
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  }

  function gaps(tokens) {
    if (!tokens || !tokens.skill) return null;
    return tokens.texts.map((_, i) =>
      tokens.skill[i] === null || tokens.ordinary[i] === null ? null : tokens.skill[i] - tokens.ordinary[i]);
  }

  const known = (values) => (values || []).filter((value) => value !== null);
  const allGaps = (episode) => episode.steps.flatMap((step) => known(gaps(step.tokens)));

  function colour(node, gap) {
    if (gap === null) return node;
    node.classList.add(gap < 0 ? "negative" : "positive");
    node.style.setProperty("--a", `calc(${strength(gap).toFixed(3)} * var(--strength))`);
    return node;
  }

  // ---- where we are: #episode=<source>/<index>

  function read() {
    const match = /^#episode=(.+)\/(\d+)$/.exec(decodeURIComponent(location.hash));
    const named = match && data.sources.find((each) => each.key === match[1]);
    const source = named || data.sources.find((each) => each.key === data.shown) || data.sources[0];
    const found = match ? source.episodes.findIndex((each) => each.index === Number(match[2])) : 0;
    const missing = match && (!named || found < 0) ? `${match[1]}/${match[2]}` : null;
    return { source, place: Math.max(0, found), asked: Boolean(match), missing };
  }

  function go(source, place) {
    location.hash = `episode=${source.key}/${source.episodes[place].index}`;
  }

  // ---- the list

  function showList(source, place) {
    select.value = source.key;
    list.replaceChildren(...source.episodes.map((episode, at) => {
      const gap = mean(allGaps(episode));
      const notes = `#${episode.index} \u00b7 ${episode.steps.length} steps` + (gap === null ? "" : ` \u00b7 gap ${fixed(gap, 3)}`);
      const button = element("button", { type: "button", "aria-current": String(at === place) },
        mark(episode.success), element("span", {}, episode.category), element("small", {}, notes));
      button.addEventListener("click", () => go(source, at));
      return element("li", {}, button);
    }));
  }

  function mark(success) {
    const text = success ? "\u2713" : "\u2717";
    return element("span", { class: success ? "good" : "bad", role: "img", "aria-label": success ? "success" : "failure" }, text);
  }

  // ---- one episode

  function showEpisode(source, place) {
    const episode = source.episodes[place];
    if (!episode) return article.replaceChildren("No episode.");
    article.replaceChildren(
      arrows(source, place),
      element("h3", {}, episode.goal),
      chips(episode),
      ...(episode.skill ? [skill(episode.skill)] : []),
      ...(allGaps(episode).length ? [legend(), glance(episode)] : []),
      ...episode.steps.map(step),
      ...(episode.final ? [element("div", { class: "step" }, element("h4", {}, "Final observation"),
        observation(episode.final))] : []),
    );
  }

  function arrows(source, place) {
    const button = (label, text, to) => {
      const node = element("button", { type: "button", "aria-label": label }, text);
      node.disabled = to < 0 || to >= source.episodes.length;
      node.addEventListener("click", () => go(source, to));
      return node;
    };
    return element("div", { class: "arrows" }, button("Previous episode", "\u2190", place - 1), button("Next episode", "\u2192", place + 1));
  }

  function chips(episode) {
    const found = allGaps(episode);
    const chip = (name, value) => element("span", { class: "chip" }, `${name} `, element("b", {}, value));
    return element("div", { class: "chips" },
      element("span", { class: `chip ${episode.success ? "good" : "bad"}` }, mark(episode.success), episode.success ? " success" : " failure"),
      chip("family", episode.category),
      chip("reward", fixed(episode.reward)),
      episode.penalty ? chip("penalty", fixed(episode.penalty)) : null,
      episode.advantage === null ? null : chip("advantage", fixed(episode.advantage)),
      chip("steps", String(episode.steps.length)),
      episode.stop === "done" ? null : chip("cut by", episode.stop),
      found.length ? chip("mean gap", fixed(mean(found), 3)) : null,
      found.length ? chip("gate > 0.5", share(mean(found.map((gap) => (gap > 0 ? 1 : 0))))) : null,
      chip("task", episode.task));
  }

  function skill(found) {
    const usable = found.status === "ok";
    const by = found.analyzer ? ` \u00b7 ${found.analyzer}` : "";
    return element("div", { class: usable ? "skill" : "skill lost" },
      element("h4", {}, usable ? `Skill written in hindsight${by}` : `No usable skill: ${found.status}${by}`),
      element("p", { class: "rule" }, usable ? found.skill : found.raw || found.skill || "(nothing)"),
      found.summary ? element("p", { class: "muted" }, found.summary) : null);
  }

  function legend() {
    const scale = element("span", { class: "scale" }, ...[-2, -1, -0.5, -0.1, 0.1, 0.5, 1, 2].map((gap) =>
      colour(element("span", {}, (gap > 0 ? "+" : "") + minus(String(gap))), gap)));
    return element("div", { class: "legend" }, "Gap, nats: red, the skill speaks against the token", scale, "blue, for it");
  }

  function glance(episode) {
    const means = episode.steps.map((each) => mean(known(gaps(each.tokens))));
    const most = Math.max(...means.map((value) => Math.abs(value || 0)), 0.05);
    return element("div", { class: "glance", role: "group", "aria-label": "Mean gap of each step" }, ...means.map((value, at) => {
      const bar = element("i", {});
      bar.style.height = `${(50 * Math.abs(value || 0)) / most}%`;
      const label = `Step ${at + 1}: mean gap ${fixed(value, 3)}`;
      const link = element("a", { href: `#step-${at}`, class: value < 0 ? "negative" : "positive", title: label, "aria-label": label }, bar);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        document.getElementById(`step-${at}`).scrollIntoView();
      });
      return link;
    }));
  }

  function step(each, at) {
    const found = gaps(each.tokens);
    const average = mean(known(found));
    return element("section", { class: "step", id: `step-${at}` },
      element("div", { class: "step-head" },
        element("b", {}, `Step ${at + 1}`),
        element("span", {}, "action ", element("code", {}, each.action || "(none)")),
        element("span", { class: each.valid ? "good" : "bad" }, each.valid ? "\u2713 valid" : "\u2717 invalid"),
        element("span", {}, `reward ${fixed(each.reward)}`),
        average === null ? null : element("span", {}, `mean gap ${fixed(average, 3)}`)),
      observation(each.observation, each.image),
      each.tokens ? response(each.tokens, found) : element("div", { class: "response" }, each.response),
      each.tokens ? numbers(each.tokens, found) : null);
  }

  const SEPARATOR = " [SEP] "; // between the parts of a page, as WebShop writes it

  function observation(page, image) {
    const parts = page.split(SEPARATOR);
    const text = parts.length > 1 ? parts.map((part) => element("span", { class: "part" }, part)) : [page];
    const picture = image ? element("img", { class: "picture", alt: "", src: `data:image/png;base64,${image}` }) : null;
    return element("div", { class: "observation" }, picture, ...text);
  }

  function response(tokens, found) {
    const box = element("div", { class: "response" }, ...tokens.texts.map((text, i) => {
      const node = colour(element("span", { class: "token" }, text), found ? found[i] : null);
      node.dataset.at = i;
      return node;
    }));
    box.addEventListener("pointerover", (event) => showTip(event.target, tokens, found));
    box.addEventListener("pointerleave", () => { tip.hidden = true; });
    return box;
  }

  const rowsOf = (tokens, found, i) => [
    ["ordinary log-prob", fixed(tokens.ordinary[i], 3)],
    ["skill log-prob", fixed(tokens.skill ? tokens.skill[i] : null, 3)],
    ["gap", fixed(found ? found[i] : null, 3)],
    ["gate", fixed(found && found[i] !== null ? gate(found[i]) : null, 3)],
  ];

  function showTip(node, tokens, found) {
    if (!node.classList.contains("token")) return;
    const rows = rowsOf(tokens, found, Number(node.dataset.at));
    tip.replaceChildren(element("b", {}, visible(tokens.texts[Number(node.dataset.at)])),
      element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
    tip.hidden = false;
    const box = node.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 12);
    const above = box.top > tip.offsetHeight + 12;
    tip.style.left = `${Math.max(8, left) + scrollX}px`;
    tip.style.top = `${scrollY + (above ? box.top - tip.offsetHeight - 6 : box.bottom + 6)}px`;
  }

  // The same numbers for a keyboard or a screen reader, made when they are opened.
  function numbers(tokens, found) {
    const details = element("details", {}, element("summary", {}, `${tokens.texts.length} tokens as a table`));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      const heads = ["token", ...rowsOf(tokens, found, 0).map(([name]) => name)];
      const body = tokens.texts.map((text, i) => element("tr", {}, element("td", {}, visible(text)),
        ...rowsOf(tokens, found, i).map(([, value]) => element("td", {}, value))));
      details.append(element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
        element("tbody", {}, ...body)));
    });
    return details;
  }

  // ---- start

  function show() {
    const { source, place, asked, missing } = read();
    tip.hidden = true;
    showList(source, place);
    showEpisode(source, place);
    if (missing) article.prepend(element("p", { class: "bad" }, `Episode ${missing} is not embedded in this page; this is another one.`));
    return asked;
  }

  select.append(...data.sources.map((source) =>
    element("option", { value: source.key }, `${source.title} (${source.episodes.length} of ${source.total})`)));
  select.addEventListener("change", () => go(data.sources.find((each) => each.key === select.value), 0));
  addEventListener("hashchange", () => { if (location.hash.startsWith("#episode=")) show(); });
  if (show()) document.getElementById("episodes").scrollIntoView({ behavior: "instant" });
})();
