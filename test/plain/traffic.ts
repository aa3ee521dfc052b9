import type { HttpRequest, Transport } from '../../conformance/http/transport.ts';
import type { AutoClock } from '../../conformance/mutants/reference/auto-clock.ts';

/** A request as a provider receives it, with what it answered. */
export interface Received {
  /** The wall clock, in milliseconds. */
  at: number;
  method: string;
  /** Below the base URL. */
  path: string;
  query: string;
  /** In the order of sending. */
  headers: readonly (readonly [name: string, value: string])[];
  body: string;
  status: number;
  /** The status of the instance in the answer; empty if there is none. */
  shown: string;
}

/** Records every request on its way to a transport. */
export function recording(
  transport: Transport,
  baseUrl: string,
  clock: AutoClock,
): { transport: Transport; received: Received[] } {
  const received: Received[] = [];
  const send: Transport['send'] = async (request, limits) => {
    const at = clock.wall();
    const answer = await transport.send(request, limits);
    received.push({
      at,
      ...partsOf(request, baseUrl),
      ...('status' in answer
        ? { status: answer.status, shown: shownIn(answer.body) }
        : { status: 0, shown: '' }),
    });
    return answer;
  };
  return { transport: { ...transport, send }, received };
}

function partsOf({ method, url, headers, body = '' }: HttpRequest, baseUrl: string) {
  const [path = '', query = ''] = url.slice(baseUrl.length).split('?');
  return { method, path, query, headers: Object.entries(headers), body };
}

function shownIn(body: string): string {
  try {
    const { status } = JSON.parse(body) as { status?: unknown };
    return typeof status === 'string' ? status : '';
  } catch {
    return '';
  }
}
