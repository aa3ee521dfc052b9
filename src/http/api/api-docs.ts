import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Context, type Env, Hono } from 'hono';

/** The package has the files of the page next to its chunks, compressed. */
const isBundled = import.meta.url.endsWith('.js');
const swaggerUiFolder = isBundled
  ? new URL('./swagger-ui/', import.meta.url)
  : new URL('./', `file://${createRequire(import.meta.url).resolve('swagger-ui-dist/package.json')}`);
const swaggerUiFiles = new Map([
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
]);

/** Serves `/openapi.json`, and `/docs`, which shows it. */
export function apiDocs<E extends Env>(title: string, document: () => object): Hono<E> {
  let bytes: Buffer | undefined;
  const page = docsPage(title);
  return new Hono<E>()
    .get('/openapi.json', (context) => {
      bytes ??= Buffer.from(JSON.stringify(document()));
      return sendShared(context, bytes, { 'Content-Type': 'application/json' });
    })
    .get('/docs', (context) => context.html(page, 200, { 'Content-Security-Policy': docsPolicy }))
    .get('/docs/:file', async (context) => {
      const file = context.req.param('file');
      const type = swaggerUiFiles.get(file);
      if (type === undefined) return context.notFound();
      return sendShared(context, await readOnce(file), {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=86400',
      });
    }) as Hono<E>;
}

const filesRead = new Map<string, Promise<Buffer>>();

/** Reads a file into one shared buffer, even for concurrent requests. A failed read is retried at the next request. */
async function readOnce(file: string): Promise<Buffer> {
  let reading = filesRead.get(file);
  if (reading === undefined) {
    reading = isBundled
      ? readFile(new URL(`${file}.gz`, swaggerUiFolder)).then(promisify(gunzip))
      : readFile(new URL(file, swaggerUiFolder));
    filesRead.set(file, reading);
    reading.catch(() => filesRead.delete(file));
  }
  return reading;
}

function sendShared(context: Context, bytes: Buffer, headers: Record<string, string>): Response {
  return context.body(sharedBody(bytes), 200, { ...headers, 'Content-Length': String(bytes.length) });
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

/** Part of a body that is sent to one client at a time. */
const SLICE_BYTES = 64 * 1024;

/**
 * Streams one buffer to many clients, slice by slice, each after the last one was drained. A slow client then holds one
 * slice, not a copy of the body (TLS copies all data that it is given).
 */
function sharedBody(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(sent, sent + SLICE_BYTES));
        sent += SLICE_BYTES;
        if (sent >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
