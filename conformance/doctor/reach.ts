import { objectsField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import type { FailureKind } from '../transcript/records.ts';
import { likelyBaseUrls } from './base-url.ts';
import { config, type Diagnosis, note, ok } from './diagnosis.ts';
import { isEnvelope, isPage, type Probe, type ProbeParts, probe, requestToken } from './probe.ts';

const SHOWN_CHARS = 80;

export interface Reached {
  diagnoses: Diagnosis[];
  /** The answer to GET /configurations, if there was one. */
  configurations?: Probe;
  /** The bearer value that the target accepts, if known. */
  bearer: string | undefined;
}

/** Checks by GET /configurations that the target is reachable, is an orchestrator, and accepts the key. */
export async function reach(parts: ProbeParts, baseUrl: string): Promise<Reached> {
  const first = await probe(parts, `${baseUrl}/configurations`);
  const bearer = parts.apiKey;
  if (first.failure !== undefined) return { diagnoses: await onFailure(parts, baseUrl, first), bearer };
  const reachable = passedStages('reset', baseUrl);
  const status = first.answer?.status ?? 0;
  const isOpen = isGood(first);
  if (isOpen && bearer !== undefined)
    return { diagnoses: [...reachable, ...keyIsTaken()], configurations: first, bearer };
  const isRefused = status === 401 || status === 403;
  if ((isOpen || isRefused) && bearer === undefined && parts.login === undefined)
    return { diagnoses: [...reachable, ok('HTTP', `without a key it answers ${status}`)], bearer };
  if (isOpen || isRefused) {
    const { diagnoses, ...rest } = await onRefusal(parts, baseUrl, first);
    return { diagnoses: [...reachable, ...diagnoses], ...rest };
  }
  const misled = await onWrongAnswer(parts, baseUrl, first);
  return {
    diagnoses: [...reachable, misled],
    bearer,
    ...(misled.state !== 'config' && { configurations: first }),
  };
}

function isGood({ answer, json }: Probe): boolean {
  return (
    answer?.status === 200 &&
    Array.isArray((json as { configurations?: unknown } | undefined)?.configurations)
  );
}

function keyIsTaken(): Diagnosis[] {
  return [ok('HTTP', 'GET /configurations answers with a list'), ok('API key', 'it is accepted')];
}

const RUNGS: readonly { kind: FailureKind; subject: string; fine: (url: URL) => string }[] = [
  { kind: 'dns', subject: 'DNS', fine: ({ hostname }) => `${hostname} resolves` },
  { kind: 'connect', subject: 'TCP', fine: ({ host }) => `${host} takes connections` },
  { kind: 'tls', subject: 'TLS', fine: () => 'the certificate is good' },
];

/** The stages that an exchange passed before it failed. */
function passedStages(kind: FailureKind, baseUrl: string): Diagnosis[] {
  const url = new URL(baseUrl);
  const index = RUNGS.findIndex((rung) => rung.kind === kind);
  return RUNGS.slice(0, index === -1 ? RUNGS.length : index)
    .filter((rung) => rung.kind !== 'tls' || url.protocol === 'https:')
    .map(({ subject, fine }) => ok(subject, fine(url)));
}

async function onFailure(parts: ProbeParts, baseUrl: string, { failure }: Probe): Promise<Diagnosis[]> {
  const { failure: kind, message } = failure ?? { failure: 'reset', message: '' };
  const below = passedStages(kind, baseUrl);
  const { hostname } = new URL(baseUrl);
  switch (kind) {
    case 'dns':
      return [
        ...below,
        config('DNS', message, `is ${hostname} spelt right, and known to the DNS of this machine?`),
      ];
    case 'connect':
      return [
        ...below,
        config('TCP', message, 'does the server run, and do firewalls let this machine reach it?'),
      ];
    case 'tls':
      return [...below, config('TLS', message, tlsAdvice(message))];
    case 'not_http':
      return [...below, config('HTTP', message, 'give the address of the orchestrator itself')];
    case 'too_large':
      return [...below, note('HTTP', `GET /configurations: ${message}`)];
    default:
      return [...below, await onNoAnswer(parts, baseUrl, message)];
  }
}

/** If only one endpoint fails, the run judges that. If none answers, there is nothing to test. */
async function onNoAnswer(parts: ProbeParts, baseUrl: string, message: string): Promise<Diagnosis> {
  const { answer } = await probe(parts, `${baseUrl}/availability`);
  if (answer !== undefined) return note('HTTP', `GET /configurations: ${message}`);
  return config(
    'HTTP',
    `neither GET /configurations nor GET /availability is answered: ${message}`,
    'look into the log of the server, and of the proxy in front of it',
  );
}

async function onRefusal(
  parts: ProbeParts,
  baseUrl: string,
  refused: Probe,
): Promise<Omit<Reached, 'configurations'> & { configurations?: Probe }> {
  const found = await requestToken(parts, baseUrl);
  if (found !== undefined) {
    const again = await probe(parts, `${baseUrl}/configurations`, found.token);
    if (isGood(again)) {
      const subject = found.isOfKey ? 'API key' : 'Login';
      const diagnosis = ok(subject, 'it is accepted by POST /auth/token, and its token by the rest');
      return { diagnoses: [diagnosis], configurations: again, bearer: found.token };
    }
  }
  const isKey = parts.apiKey !== undefined;
  const said = isKey
    ? `GET /configurations with this key is answered ${refused.answer?.status}`
    : 'there is no access token for this user name and password';
  const fix = isKey
    ? 'is it the key of this provider, whole, and not revoked?'
    : 'are they of this provider?';
  return { diagnoses: [config(isKey ? 'API key' : 'Login', said, fix)], bearer: parts.apiKey };
}

async function onWrongAnswer(parts: ProbeParts, baseUrl: string, seen: Probe): Promise<Diagnosis> {
  const { answer, url } = seen;
  const status = answer?.status ?? 0;
  if (status >= 300 && status < 400) return onRedirect(url, answer?.headers['location']);
  if (status >= 500)
    return note('HTTP', `GET /configurations is answered ${status}, which the run will judge`);
  const meant = await findLikelyBaseUrl(parts, baseUrl);
  const said = isPage(seen)
    ? `${url} is answered ${status} with a page for a browser`
    : `${url} is answered ${status}${answer?.body === '' ? ' without a body' : ''}`;
  if (meant !== undefined)
    return config('base_url', said, `write ${meant}, which answers as an orchestrator does`);
  if (isPage(seen))
    return config(
      'HTTP',
      said,
      'is the base_url right, and does a proxy, a login page or a landing page stand before the orchestrator?',
    );
  if (status === 200 || isEnvelope(seen.json))
    return note(
      'HTTP',
      `GET /configurations is answered ${status} ${shapeOf(seen)}, which the run will judge`,
    );
  return config(
    'base_url',
    `${said}, and so are its likely neighbours`,
    'write the address below which the endpoints of the contract are, such as https://<host>/v1',
  );
}

function shapeOf({ json, answer }: Probe): string {
  if (isEnvelope(json)) return 'with an error';
  const start = printable(answer?.body ?? '', SHOWN_CHARS);
  return json === undefined ? `with what is not JSON (${start})` : 'without a list `configurations`';
}

function onRedirect(url: string, location: string | undefined): Diagnosis {
  const target =
    location !== undefined && URL.canParse(location, url) ? new URL(location, url).href : undefined;
  const where = printable(target ?? location ?? 'nowhere', SHOWN_CHARS * 2);
  const meant = /^(.+)\/configurations\/?$/.exec(where)?.[1];
  return config(
    'base_url',
    `${url} redirects to ${where}, and clients of the contract follow no redirects`,
    meant === undefined
      ? 'write the address of the orchestrator itself'
      : `if that is the orchestrator, write ${meant}`,
  );
}

async function findLikelyBaseUrl(parts: ProbeParts, baseUrl: string): Promise<string | undefined> {
  for (const neighbour of likelyBaseUrls(baseUrl)) {
    const seen = await probe(parts, `${neighbour}/configurations`);
    const isRefused = seen.answer?.status === 401 && isEnvelope(seen.json);
    if (isGood(seen) || isRefused) return neighbour;
  }
  return undefined;
}

/** The offers in an answer. */
export function offersOf(seen: Probe | undefined): ReturnType<typeof objectsField> {
  return seen?.answer?.status === 200 ? objectsField(seen.json, 'configurations') : [];
}

/** The remedy for a TLS failure, by the transport's message. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/has expired/, 'renew it on the server (and look at the clock of this machine)'],
  [/is not valid yet/, 'look at the clock of this machine, and at the dates of the certificate'],
  [
    /is not for /,
    'write the base_url with a name that the certificate is for, or have one made for this name',
  ],
  [
    /is self-signed|authority that is not trusted|issuer that is unknown/,
    'give the certificate of its authority with --ca-file; where that is a public one, let the server send its intermediate certificates too',
  ],
  [
    /perhaps plain HTTP/,
    'does the base_url begin with http:// and not with https://, or has it another port?',
  ],
  [
    /asks for a certificate of the client/,
    'the contract knows bearer credentials only: switch that off for this name',
  ],
  [/no version of TLS|no cipher|too weak/, 'let the server speak TLS 1.2 or 1.3 with usual ciphers'],
  [/no certificate for this name/, 'have the server serve a certificate for this name'],
];

function tlsAdvice(message: string): string {
  const [, advice] = ADVICE.find(([pattern]) => pattern.test(message)) ?? [];
  return advice ?? 'look at what the server logs of the TLS handshake';
}
