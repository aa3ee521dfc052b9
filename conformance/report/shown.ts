import type { Shown } from '../evidence/finding.ts';
import { toCurl } from '../http/curl.ts';
import type { Exchange, SshRecord } from '../transcript/records.ts';
import { cut, toBodyExcerpt, toExcerpt } from './excerpt.ts';
import type { Reference, ReportExchange, ReportLogin } from './report.ts';

const MAX_HEADERS = 40;
const MAX_HEADER_CHARACTERS = 500;
const MAX_PATH_CHARACTERS = 1000;
const MAX_CURL_CHARACTERS = 16_384;
const MAX_STDOUT_CHARACTERS = 1000;
const MAX_WORD_CHARACTERS = 300;

/** Collects the records that the checks of a report refer to. */
export class ShownRecords {
  readonly #run: { baseUrl: string; startedAt: string };
  readonly #exchanges = new Map<number, Exchange>();
  readonly #logins = new Map<number, SshRecord>();

  constructor(run: { baseUrl: string; startedAt: string }) {
    this.#run = run;
  }

  /** Adds the record to the report and returns a reference to it. */
  refer(shown: Shown): Reference {
    if (shown.kind === 'exchange') {
      this.#exchanges.set(shown.n, shown);
      return { exchange: shown.n };
    }
    this.#logins.set(shown.n, shown);
    return { login: shown.n };
  }

  /** The wall-clock time when a record began. */
  wallOf(shown: Shown): string {
    return shown.kind === 'exchange' ? shown.wall : wallAt(this.#run.startedAt, shown.sentAt);
  }

  get exchanges(): ReportExchange[] {
    const found = [...this.#exchanges.values()].toSorted((a, b) => a.n - b.n);
    return found.map((exchange) => toReportExchange(exchange, this.#run.baseUrl));
  }

  get logins(): ReportLogin[] {
    const found = [...this.#logins.values()].toSorted((a, b) => a.n - b.n);
    return found.map((login) => toReportLogin(login, this.wallOf(login)));
  }
}

/** The wall clock `ms` after an RFC 3339 time. An invalid time is returned unchanged. */
function wallAt(startedAt: string, ms: number): string {
  const at = Date.parse(startedAt) + ms;
  return Number.isFinite(at) && Math.abs(at) < 8.64e15 ? new Date(at).toISOString() : startedAt;
}

function toReportExchange(exchange: Exchange, baseUrl: string): ReportExchange {
  const { n, step, request, answer, failure } = exchange;
  const curl = curlOf(exchange, baseUrl);
  return {
    n,
    step,
    at_ms: round(exchange.sentAt),
    at: exchange.wall,
    took_ms: round(exchange.endedAt - exchange.sentAt),
    ...(answer !== undefined && { first_byte_ms: round(answer.firstByteMs) }),
    credential: exchange.credential,
    request_id: exchange.requestId,
    user_agent: request.headers['user-agent'] ?? '',
    method: request.method,
    path: cut(request.path, MAX_PATH_CHARACTERS),
    ...(answer !== undefined && { status: answer.status }),
    ...(failure !== undefined && {
      failure: { kind: failure.kind, message: cut(failure.message, MAX_HEADER_CHARACTERS) },
    }),
    request_headers: toHeaders(request.headers),
    ...(request.body !== undefined && { request_body: toBodyExcerpt(request.body) }),
    ...(answer !== undefined && {
      answer_headers: toHeaders(answer.headers),
      answer_body: toBodyExcerpt(answer.body),
    }),
    ...(curl !== undefined && { curl }),
  };
}

function toReportLogin(login: SshRecord, at: string): ReportLogin {
  const { n, step, message, hostKey, exitCode, stdout } = login;
  const word = (text: string): string => cut(text, MAX_WORD_CHARACTERS);
  return {
    n,
    step,
    at_ms: round(login.sentAt),
    at,
    took_ms: round(login.endedAt - login.sentAt),
    instance_id: word(login.instanceId),
    key: login.key,
    host: word(login.host),
    port: login.port,
    username: word(login.username),
    command: word(login.command),
    rung: login.rung,
    ...(message !== undefined && { message: word(message) }),
    ...(hostKey !== undefined && { host_key: word(hostKey) }),
    ...(exitCode !== undefined && { exit_code: exitCode }),
    ...(stdout !== undefined && { stdout: toExcerpt(stdout, MAX_STDOUT_CHARACTERS) }),
  };
}

function curlOf({ request }: Exchange, baseUrl: string): string | undefined {
  const { method, path, headers, body } = request;
  if (path.length + (body?.length ?? 0) > MAX_CURL_CHARACTERS) return undefined;
  const curl = toCurl({ method, url: `${baseUrl}${path}`, headers, ...(body !== undefined && { body }) });
  return curl.length > MAX_CURL_CHARACTERS ? undefined : curl;
}

function toHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept = Object.entries(headers).slice(0, MAX_HEADERS);
  return Object.fromEntries(
    kept.map(([name, value]) => [cut(name, MAX_WORD_CHARACTERS), cut(value, MAX_HEADER_CHARACTERS)]),
  );
}

/** Rounds milliseconds to the precision of a clock. */
export function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
