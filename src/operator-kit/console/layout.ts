import { count, type Html, html, type Tone } from './parts.ts';

/** The name and the navigation of a console. */
export interface Look {
  /** Such as `Berth`. */
  brand: string;
  /** Tabs in their order. The first is that of `/console`. */
  tabs: readonly { path: string; name: string }[];
  search: { path: string; label: string; placeholder: string };
  /** The command that creates an operator key. */
  command: string;
}

/** The badge on a tab. */
export interface TabMark {
  path: string;
  count: number;
  tone: Tone;
}

export interface Frame {
  title: string;
  /** Path of the current page. */
  path: string;
  operator: string;
  role: string;
  csrf: string;
  mark: TabMark | undefined;
  server: string;
  version: string;
  search: string;
  body: Html;
}

/** A complete page for a logged-in operator. */
export function framed({ brand, tabs, search: to }: Look, frame: Frame): Html {
  const { title, path, operator, role, csrf, mark, server, version, search, body } = frame;
  const top = html`<header class="top">
<div class="bar">
<a class="brand" href="/console">${brand}</a>
<form class="search" action="${to.path}" role="search">
<input type="search" name="q" value="${search}" placeholder="${to.placeholder}" aria-label="${to.label}">
</form>
<div class="who">
<span class="live" role="status">as it was read</span>
<span class="soft" title="Role: ${role}">${operator}</span>
<form method="post" action="/console/logout">${csrfField(csrf)}<button class="plain">Sign out</button></form>
</div>
</div>
<nav class="tabs" id="tabs" aria-label="Pages" data-live>${tabs.map((tab) => tabLink(tab, path, mark))}</nav>
</header><div class="off bad" role="alert" hidden></div>`;
  const foot = html`<footer>Server ${server} · Berth ${version} · times are UTC</footer>`;
  return page(
    title,
    html`<a class="skip" href="#main">Skip to the content</a>${top}<main id="main">${body}</main>${foot}`,
    brand,
  );
}

function tabLink({ path, name }: Look['tabs'][number], shown: string, marked: TabMark | undefined): Html {
  const isShown = path === '/console' ? shown === path : shown.startsWith(path);
  const mark =
    marked?.path === path && marked.count > 0
      ? html` <span class="count ${marked.tone}">${count(marked.count)}</span>`
      : '';
  return isShown
    ? html`<a href="${path}" aria-current="page">${name}${mark}</a>`
    : html`<a href="${path}">${name}${mark}</a>`;
}

/** The login page, which is the only page without a login. */
export function loginPage(
  { brand, command }: Pick<Look, 'brand' | 'command'>,
  { problem, next }: { problem?: string; next: string },
): Html {
  return page(
    'Sign in',
    html`<main class="login"><h1>${brand} console</h1>
${problem === undefined ? '' : html`<div class="notice bad" role="alert">${problem}</div>`}
<form class="card" method="post" action="/console/login">
<input type="hidden" name="next" value="${next}">
<input name="username" value="operator" autocomplete="username" hidden>
<label class="field"><span>Operator key</span><input type="password" name="key" autocomplete="current-password" required autofocus></label>
<button class="primary">Sign in</button>
<p class="small soft">On the server, <code>${command} create NAME</code> creates one; in a clone of the repository, <code>${command.replace('berth', 'npm run -s berth --')} create NAME</code>. It is not the key of an account.</p>
</form></main>`,
    brand,
  );
}

/** An error page, with or without a login. */
export function problemPage({ brand, tabs }: Look, title: string, text: unknown): Html {
  return page(
    title,
    html`<main class="login"><h1>${title}</h1><div class="notice bad">${text}</div><p><a href="/console">To the ${tabs[0]?.name.toLowerCase()}</a></p></main>`,
    brand,
  );
}

/** Shows a secret, once. It has no part that the script reads again: the address has no page, and a reload makes another. */
export function secretPage({ brand }: Look, secret: string, next: string): Html {
  return page(
    'Keep this now',
    html`<main class="login"><h1>Keep this now: it is not shown again</h1>
<div class="card"><pre>${secret}</pre></div><p><a class="button" href="${next}">I have it</a></p></main>`,
    brand,
  );
}

function page(title: string, body: Html, brand: string): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${brand}</title>
<link rel="stylesheet" href="/console/assets/console.css">
<link rel="icon" href="data:,">
<script type="module" src="/console/assets/console.js"></script>
</head>
<body>
${body}
</body>
</html>
`;
}

/** The hidden field of every form that changes something. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}">`;
}
