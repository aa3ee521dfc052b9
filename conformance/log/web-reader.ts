import { type LogReader, LogUnavailable } from './log-reader.ts';

export interface WebLimits {
  /** Limit of one request, in milliseconds. */
  requestMs: number;
  /** Limit of all requests together, in milliseconds. */
  totalMs: number;
}

const LIMITS: WebLimits = { requestMs: 30_000, totalMs: 300_000 };

/**
 * Reads a log from a web server, which may be any: it follows no redirects, and no file is read beyond its limit, however
 * it is compressed. @throws {LogUnavailable} if the URL is not one
 */
export function webReader(url: string, limits: WebLimits = LIMITS): LogReader {
  const prefix = parseUrl(url);
  const all = AbortSignal.timeout(limits.totalMs);
  return {
    place: url,
    async read(path, maxBytes) {
      const address = `${prefix}/${path}`;
      const signal = AbortSignal.any([all, AbortSignal.timeout(limits.requestMs)]);
      try {
        const response = await fetch(address, { redirect: 'manual', signal, cache: 'no-store' });
        if (response.status !== 200) {
          await response.body?.cancel();
          if (response.status === 404 || response.status === 410) return undefined;
          throw new LogUnavailable(`GET ${address} was answered ${response.status}`);
        }
        return await readBody(response, address, maxBytes);
      } catch (error) {
        if (error instanceof LogUnavailable) throw error;
        throw new LogUnavailable(`GET ${address} failed: ${failureText(error, all.aborted, limits)}`);
      }
    },
  };
}

async function readBody({ body }: Response, address: string, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new LogUnavailable(`GET ${address} was answered more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function failureText(error: unknown, isAll: boolean, { requestMs, totalMs }: WebLimits): string {
  if (error instanceof Error && error.name === 'TimeoutError')
    return isAll
      ? `the log took longer than ${totalMs / 1000} s in all`
      : `it took longer than ${requestMs / 1000} s`;
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return error instanceof Error ? error.message : String(error);
}

function parseUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw new LogUnavailable(`${url} is not a URL of http or https`);
  if (parsed.search !== '' || parsed.hash !== '' || parsed.username !== '')
    throw new LogUnavailable(`the URL of a log has no user, query or fragment`);
  return parsed.href.replace(/\/+$/, '');
}
