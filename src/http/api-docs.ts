import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Env, Hono } from 'hono';

const swaggerUiFolder = new URL(
  './',
  `file://${createRequire(import.meta.url).resolve('swagger-ui-dist/package.json')}`,
);
const swaggerUiFiles = new Map([
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
]);

/** `/openapi.json`, and `/docs` that shows it. */
export function apiDocs<E extends Env>(title: string, document: object): Hono<E> {
  const page = docsPage(title);
  return new Hono<E>()
    .get('/openapi.json', (context) => context.json(document))
    .get('/docs', (context) => context.html(page, 200, { 'Content-Security-Policy': docsPolicy }))
    .get('/docs/:file', async (context) => {
      const type = swaggerUiFiles.get(context.req.param('file'));
      if (type === undefined) return context.notFound();
      const bytes = await readFile(new URL(context.req.param('file'), swaggerUiFolder));
      return context.body(new Uint8Array(bytes), 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=86400',
      });
    }) as Hono<E>;
}

const docsScript = "SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs', deepLinking: true });";
const docsPolicy = `default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self' 'sha256-${createHash('sha256').update(docsScript).digest('base64')}'`;

function docsPage(title: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>${docsScript}</script>
</body>
</html>
`;
}
