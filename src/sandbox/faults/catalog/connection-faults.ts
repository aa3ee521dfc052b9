import { z } from 'zod';
import { BrokenConnection, delay, delivered, untilAborted } from '../connection.ts';
import { type HttpFault, httpFault, type TlsFault } from '../fault.ts';
import { bytesOf } from '../rewrite.ts';

const HTTPS = 'O: the endpoints are reachable over HTTPS.';
const UNREACHABLE = 'M: an unreachable provider ends no deployment.';
const UNKNOWN_OUTCOME = 'M: a request without an answer may have been carried out.';
const IDEMPOTENT = 'O: an Idempotency-Key makes one instance.';
const DEADLINE = 'M: the whole answer has a deadline.';

const tls = { layer: 'tls', on: [], params: z.object({}) } as const;

export const tlsFaults = {
  'certificate-expired': {
    ...tls,
    does: 'The certificate expired a day ago.',
    rule: HTTPS,
    certificate: 'expired',
    code: 'CERT_HAS_EXPIRED',
  },
  'certificate-wrong-name': {
    ...tls,
    does: 'The certificate is for another name.',
    rule: HTTPS,
    certificate: 'wrong-name',
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  },
  'handshake-reset': {
    ...tls,
    does: 'The connection is reset after the first message of the handshake.',
    rule: UNREACHABLE,
    code: 'ECONNRESET',
  },
} as const satisfies Record<string, TlsFault>;

/** Half of the body comes, then it ends. */
function halfBody(ending: 'reset' | 'silence'): HttpFault['answer'] {
  return async ({ clock, request }, ask) => {
    const response = await ask();
    const whole = await bytesOf(response);
    const half = whole.subarray(0, Math.floor(whole.byteLength / 2));
    return delivered(response, whole, { pieces: [half], everyMs: 0, ending }, clock, request);
  };
}

/** Copies a request so that it survives its connection. */
async function detached(request: Request): Promise<() => Request> {
  const { method, headers, url } = request;
  const body = request.body === null ? null : await request.arrayBuffer();
  return () => new Request(url, { method, headers, body });
}

function piecesOf(body: Uint8Array, bytes: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(body.byteLength / bytes) }, (_, index) =>
    body.subarray(index * bytes, (index + 1) * bytes),
  );
}

/** How often a piece of a body comes over a slow connection. */
const PIECES_PER_S = 10;

export const connectionFaults = {
  latency: httpFault('connection', {
    does: 'The answer comes later, by `ms` and up to `jitter_ms` more.',
    rule: 'M: a slow provider does not delay others.',
    params: {
      ms: z.number().min(0).default(2_000),
      jitter_ms: z.number().min(0).default(0),
    },
    times: 'sticky',
    async answer({ clock, params: { ms, jitter_ms: jitterMs }, draw }, ask) {
      const response = await ask();
      await delay(clock, ms + draw('jitter') * jitterMs);
      return response;
    },
  }),
  'slow-request': httpFault('connection', {
    does: 'The request reaches the server `ms` later.',
    rule: 'O: a client that gave up may still have made an instance.',
    params: { ms: z.number().min(0).default(15_000) },
    async answer({ clock, params, request }, ask) {
      const again = await detached(request);
      await delay(clock, params.ms);
      return ask(again());
    },
  }),
  'no-answer': httpFault('connection', {
    does: 'No answer comes until the client gives up. The request is carried out, unless `done` is false.',
    rule: UNKNOWN_OUTCOME,
    params: { done: z.boolean().default(true) },
    async answer({ params, request }, ask) {
      const again = await detached(request);
      if (params.done) await ask(again());
      return untilAborted(request);
    },
  }),
  'connection-refused': httpFault('connection', {
    does: 'The server is unreachable: the connection breaks at once, and nothing is carried out.',
    rule: UNREACHABLE,
    async answer() {
      throw new BrokenConnection('ECONNREFUSED');
    },
  }),
  'request-lost': httpFault('connection', {
    does: 'The connection breaks before the server has seen the request; nothing is carried out.',
    rule: UNKNOWN_OUTCOME,
    async answer() {
      throw new BrokenConnection();
    },
  }),
  'answer-lost': httpFault('connection', {
    does: 'The request is carried out, and the connection breaks before its answer: a lost 201.',
    rule: IDEMPOTENT,
    async answer({ request }, ask) {
      const again = await detached(request);
      await bytesOf(await ask(again()));
      throw new BrokenConnection();
    },
  }),
  'carried-out-late': httpFault('connection', {
    does: 'The connection breaks, but the request is still carried out `ms` later.',
    rule: UNKNOWN_OUTCOME,
    params: { ms: z.number().min(0).default(20_000) },
    async answer({ clock, params, request }, ask) {
      const again = await detached(request);
      clock.setTimer(params.ms, () => void ask(again()).then(bytesOf, () => undefined));
      throw new BrokenConnection();
    },
  }),
  'delivered-twice': httpFault('connection', {
    does: 'A proxy sends the request twice; the second answer comes back.',
    rule: IDEMPOTENT,
    async answer({ request }, ask) {
      const again = await detached(request);
      await bytesOf(await ask(again()));
      return ask(again());
    },
  }),
  'half-body-reset': httpFault('connection', {
    does: 'Half of the body comes, then the connection is reset.',
    rule: 'M: an unreadable answer proves nothing.',
    answer: halfBody('reset'),
  }),
  'half-body-silence': httpFault('connection', {
    does: 'Half of the body comes, then nothing more; the connection stays open.',
    rule: DEADLINE,
    answer: halfBody('silence'),
  }),
  'slow-body': httpFault('connection', {
    does: 'The body comes `bytes` at a time, `every_ms` apart: by default one byte per second.',
    rule: DEADLINE,
    params: {
      bytes: z.int().min(1).default(1),
      every_ms: z.number().min(1).default(1_000),
    },
    async answer({ clock, params: { bytes, every_ms: everyMs }, request }, ask) {
      const response = await ask();
      const body = await bytesOf(response);
      const pieces = piecesOf(body, bytes);
      return delivered(response, body, { pieces, everyMs, ending: 'whole' }, clock, request);
    },
  }),
  'slow-connection': httpFault('connection', {
    does: 'The connection has `latency_ms` before each answer, and carries `bytes_per_s` of the bodies of requests and answers.',
    rule: DEADLINE,
    params: {
      latency_ms: z.number().min(0).default(200),
      bytes_per_s: z.number().min(1).default(10_000),
    },
    isOfConnections: true,
    times: 'sticky',
    async answer({ clock, params: { latency_ms: latencyMs, bytes_per_s: bytesPerS }, request }, ask) {
      const again = await detached(request);
      const sent = await bytesOf(again());
      const takesMs = (bytes: number): number => (bytes / bytesPerS) * 1_000;
      await delay(clock, takesMs(sent.byteLength));
      const response = await ask(again());
      const body = await bytesOf(response);
      const piece = Math.max(1, Math.min(body.byteLength, Math.floor(bytesPerS / PIECES_PER_S)));
      const everyMs = takesMs(piece);
      // The first piece comes with the headers.
      await delay(clock, latencyMs + (body.byteLength > 0 ? everyMs : 0));
      const pieces = piecesOf(body, piece);
      return delivered(response, body, { pieces, everyMs, ending: 'whole' }, clock, request);
    },
  }),
  'half-closed-before-answer': httpFault('connection', {
    does: 'The server closes its half of the connection (FIN) in place of an answer, and goes on reading. The request is carried out, unless `done` is false.',
    rule: UNKNOWN_OUTCOME,
    params: { done: z.boolean().default(true) },
    async answer({ params, request }, ask) {
      const again = await detached(request);
      if (params.done) await bytesOf(await ask(again()));
      throw new BrokenConnection('UND_ERR_SOCKET');
    },
  }),
  'half-closed-after-answer': httpFault('connection', {
    does: 'The server closes its half of the connection (FIN) after an answer that promised to keep it alive, and goes on reading. The next request on it is not carried out.',
    rule: UNKNOWN_OUTCOME,
    isOfConnections: true,
    async answer({ clock, nthOnConnection, request }, ask) {
      if (nthOnConnection > 1) throw new BrokenConnection('UND_ERR_SOCKET');
      const response = await ask();
      const body = await bytesOf(response);
      return delivered(response, body, { pieces: [body], everyMs: 0, ending: 'half-close' }, clock, request);
    },
  }),
  'dead-connection': httpFault('connection', {
    does: 'The server answers, then is silent on the connection. The next request on it is not carried out, and gets no answer until the client gives up.',
    rule: UNKNOWN_OUTCOME,
    isOfConnections: true,
    answer: async ({ nthOnConnection, request }, ask) =>
      nthOnConnection === 1 ? ask() : untilAborted(request),
  }),
} as const satisfies Record<string, HttpFault>;
