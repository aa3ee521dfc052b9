import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { BreakCode, FaultClock } from './fault.ts';

/** A broken connection. `fetch` rejects with a TypeError whose cause has the code, as Node's own does. */
export class BrokenConnection extends TypeError {
  override readonly name = 'TypeError';
  readonly code: BreakCode;

  constructor(code: BreakCode = 'ECONNRESET') {
    super('fetch failed', { cause: Object.assign(new Error(`the connection broke: ${code}`), { code }) });
    this.code = code;
  }
}

/**
 * How a body is delivered: `pieces` one after another, `everyMs` apart; then it ends, breaks off, or stalls. `half-close`: it
 * ends, and the server closes its half of the connection.
 */
export interface Delivery {
  pieces: readonly Uint8Array[];
  everyMs: number;
  ending: 'whole' | 'reset' | 'silence' | 'half-close';
}

const deliveries = new WeakMap<Response, { delivery: Delivery; clock: FaultClock }>();

/** Returns the response with its body delivered in this way. */
export function delivered(
  response: Response,
  body: Uint8Array,
  delivery: Delivery,
  clock: FaultClock,
  request: Request,
): Response {
  const headers = new Headers(response.headers);
  const init = { status: response.status, headers };
  if (body.byteLength === 0) {
    if (delivery.ending === 'reset') throw new BrokenConnection();
    const empty = new Response(null, init);
    if (delivery.ending === 'half-close') deliveries.set(empty, { delivery, clock });
    return empty;
  }
  // The header promises the whole body.
  headers.set('content-length', String(body.byteLength));
  headers.delete('transfer-encoding');
  const made = new Response(toStream(delivery, clock, request), init);
  // Two halves of one tee'd stream break off together, before either was read. So a clone gets its own stream, and no
  // time passes for it.
  const clone = (): Response => new Response(toStream({ ...delivery, everyMs: 0 }, clock), init);
  Object.defineProperty(made, 'clone', { value: clone });
  deliveries.set(made, { delivery, clock });
  return made;
}

/**
 * Creates the stream of a delivery. With `request`, it breaks off when the client gives up, and time passes until then.
 * Without it, neither happens.
 */
function toStream(
  { pieces, everyMs, ending }: Delivery,
  clock: FaultClock,
  request?: Request,
): ReadableStream<Uint8Array> {
  let next = 0;
  const { promise: gone, reject: giveUp } = Promise.withResolvers<never>();
  gone.catch(() => undefined);
  if (request !== undefined) untilAborted(request).catch(giveUp);
  // For a stalled body, time passes only for a client that waits for more.
  const strategy = { highWaterMark: ending === 'silence' ? 0 : 1 };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = pieces[next];
        if (everyMs > 0 && next > 0 && piece !== undefined)
          await Promise.race([passing(clock, everyMs), gone]);
        next++;
        if (piece !== undefined) return controller.enqueue(piece);
        if (ending === 'whole' || ending === 'half-close') return controller.close();
        if (ending === 'reset') return controller.error(new BrokenConnection());
        await (request === undefined ? gone : clock.during(gone));
      },
      cancel: giveUp,
    },
    strategy,
  );
}

/**
 * Writes a response with an unusual body onto its connection: a reset is a TCP reset, and missing bytes are missing on
 * the wire. Returns false for an ordinary response.
 */
async function deliverTo(
  response: Response,
  outgoing: ServerResponse,
  tcpSocketOf: TcpSocketOf,
): Promise<boolean> {
  const found = deliveries.get(response);
  if (found === undefined) return false;
  const { delivery, clock } = found;
  const { socket } = outgoing;
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  for (const [index, piece] of delivery.pieces.entries()) {
    if (index > 0 && delivery.everyMs > 0) await passing(clock, delivery.everyMs);
    if (outgoing.destroyed) return true;
    await new Promise((resolve) => outgoing.write(piece, resolve));
  }
  if (delivery.ending === 'whole') outgoing.end();
  if (delivery.ending === 'half-close') outgoing.end(() => socket?.end());
  if (delivery.ending === 'reset') breakConnection(outgoing, tcpSocketOf);
  return true;
}

/** Finds the TCP socket below a socket of TLS. */
type TcpSocketOf = (socket: Socket) => Socket;

/** Returns the response. Undefined if it was already sent here, because its connection or its body breaks. */
export async function sendTo(
  outgoing: ServerResponse,
  answer: Promise<Response>,
  tcpSocketOf: TcpSocketOf,
): Promise<Response | undefined> {
  try {
    const response = await answer;
    return (await deliverTo(response, outgoing, tcpSocketOf)) ? undefined : response;
  } catch (error) {
    if (!(error instanceof BrokenConnection) && !outgoing.destroyed) throw error;
    // The server's half alone: it goes on reading.
    if (error instanceof BrokenConnection && error.code === 'UND_ERR_SOCKET') outgoing.socket?.end();
    else breakConnection(outgoing, tcpSocketOf);
    return undefined;
  }
}

/** Ends the connection with a TCP reset. */
function breakConnection({ socket }: ServerResponse, tcpSocketOf: TcpSocketOf): void {
  if (socket !== null) tcpSocketOf(socket).resetAndDestroy();
}

/** Rejects when the client disconnects. */
export function untilAborted({ signal }: Request): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Resolves after `ms`. Virtual time passes meanwhile. */
async function passing(clock: FaultClock, ms: number): Promise<void> {
  const passed = delay(clock, ms);
  // If a move of time waits for this body, that move makes the time pass.
  await Promise.race([passed, clock.during(passed)]);
}

/** Resolves after `ms`. */
export function delay(clock: FaultClock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve));
}
