import { type Env, Hono } from 'hono';
import { accepts } from 'hono/accepts';

/** What a server has at its root. */
export interface FrontPage {
  title: string;
  /** What every path of the API begins with. */
  api: string;
  /** By what is found there: the path. */
  places: Readonly<Record<string, string>>;
}

/** `/`: where the API, its description and the health are, as a page for a browser and as JSON for all else. */
export function frontPage<E extends Env>({ title, api, places }: FrontPage): Hono<E> {
  const page = toPage({ title, api, places });
  return new Hono<E>().get('/', (context) => {
    context.header('Vary', 'Accept');
    const type = accepts(context, {
      header: 'Accept',
      supports: ['application/json', 'text/html'],
      default: 'application/json',
    });
    if (type !== 'text/html') return context.json({ title, api, ...places });
    return context.html(page, 200, { 'Content-Security-Policy': PAGE_POLICY });
  }) as Hono<E>;
}

const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'";

function toPage({ title, api, places }: FrontPage): string {
  const rows = Object.entries(places).map(
    ([name, path]) => `<li>${name}: <a href="${path}">${path}</a></li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
</head>
<body>
<h1>${title}</h1>
<p>The API is at <code>${api}</code>; requests carry <code>Authorization: Bearer API_KEY</code>.</p>
<ul>
${rows.join('\n')}
</ul>
</body>
</html>
`;
}
