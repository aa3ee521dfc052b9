import type { Check } from '../checks/check.ts';
import type { Finding } from '../evidence/finding.ts';
import type {
  Exchange,
  ResourceRecord,
  RunRecord,
  Skipped,
  SshRecord,
  TranscriptRecord,
} from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';
import { toReport } from './model.ts';
import type { Report } from './report.ts';
import { sampleRequirements } from './sample-requirements.fixture.ts';

export { sampleRequirements };
export const sampleBasis = { contract: '1.0.0', digest: 'd1'.repeat(32) };

const STARTED_AT = Date.parse('2026-03-02T09:30:00.000Z');
const USER_AGENT = 'berth-conformance/0.1.0 run/7k2p';
/** Hostile values that a target may put into its answers. */
export const HOSTILE = {
  html: '</pre><script>document.title="owned"</script><img src="http://203.0.113.9/x" onerror="alert(1)">',
  ansi: '\u001b[2J\u001b[31mall checks passed\u001b[0m\u0007',
  bidi: 'safe\u202egnp.exe\u2066',
  xml: ']]>\u0000\ufffe&<',
} as const;

export function sampleRun(changes: Partial<RunRecord> = {}): RunRecord {
  return {
    kind: 'run',
    format: 1,
    suite: '0.1.0',
    requirements: sampleBasis.digest,
    runId: '7k2p',
    baseUrl: 'https://api.north-compute.example/v1',
    level: 'lifecycle',
    startedAt: new Date(STARTED_AT).toISOString(),
    userAgent: USER_AGENT,
    settings: {
      pollIntervalMs: 10_000,
      readyTimeoutMs: 600_000,
      maxCostUsd: 1,
      maxMinutes: 30,
      hasSecondKey: false,
    },
    roundTripsMs: [18.2, 17.9, 18.4],
    ...changes,
  };
}

interface Asked {
  n: number;
  at: number;
  step: string;
  method?: string;
  path: string;
  body?: unknown;
  status?: number;
  answer?: unknown;
  tookMs?: number;
}

/** An exchange `at` seconds into the run. An answer that is a string is sent unchanged, as HTML. */
export function sampleExchange(asked: Asked): Exchange {
  const { n, at, step, method = 'GET', path, body, status = 200, answer = {}, tookMs = 24 } = asked;
  const requestId = `5f0c1f6e-0000-4000-8000-${String(n).padStart(12, '0')}`;
  const isText = typeof answer === 'string';
  return {
    kind: 'exchange',
    n,
    step,
    sentAt: at * 1000,
    endedAt: at * 1000 + tookMs,
    requestId,
    wall: new Date(STARTED_AT + at * 1000).toISOString(),
    credential: 'api key',
    request: {
      method,
      path,
      headers: {
        accept: 'application/json',
        'user-agent': `${USER_AGENT} ${step}`,
        'x-request-id': requestId,
        authorization: 'Bearer [redacted: api key]',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    },
    answer: {
      status,
      headers: { 'content-type': isText ? 'text/html' : 'application/json', server: 'north/2.1' },
      body: isText ? answer : JSON.stringify(answer),
      firstByteMs: tookMs - 1,
    },
  };
}

const ID = 'i-9f31c2';

function instance(status: string): Record<string, unknown> {
  return {
    id: ID,
    name: 'berth-conf-7k2p-001',
    configuration_id: 'rtx4090-1',
    region: 'eu-north',
    status,
    ...(status === 'ONLINE' && { public_ip: '198.51.100.24', ssh_port: 22, ssh_username: 'ubuntu' }),
    created_at: '2026-03-02T09:30:04Z',
    updated_at: '2026-03-02T09:30:04Z',
  };
}

const path = `/instances/${ID}?region=eu-north`;
const catalog = sampleExchange({
  n: 1,
  at: 0.4,
  step: 'catalog/configurations',
  path: '/configurations',
  answer: { configurations: [{ id: 'rtx4090-1', vcpus: '8', available: true, regions: ['eu-north'] }] },
});
const created = sampleExchange({
  n: 4,
  at: 4,
  step: 'create/primary',
  method: 'POST',
  path: '/instances',
  status: 201,
  body: {
    configuration_id: 'rtx4090-1',
    region: 'eu-north',
    name: 'berth-conf-7k2p-001',
    ssh_keys: ['ssh-ed25519 AAAA'],
  },
  answer: instance('PROVISIONING'),
});
const polls = Array.from({ length: 40 }, (_, index) => {
  const isLost = [7, 21, 22].includes(index);
  return sampleExchange({
    n: 10 + index,
    at: 5 + index * 10.1,
    step: 'online/read',
    path,
    status: isLost ? 404 : 200,
    answer: isLost
      ? { error: { code: 'not_found', message: `no such instance ${HOSTILE.html}` } }
      : instance(index < 25 ? 'PROVISIONING' : 'ONLINE'),
  });
});
const page = sampleExchange({
  n: 60,
  at: 412,
  step: 'errors/unknown-route',
  path: '/instances/none?q=%27%22',
  status: 404,
  answer: `<html><body>${HOSTILE.html}${HOSTILE.ansi}${HOSTILE.bidi}${HOSTILE.xml}${'x'.repeat(20_000)}</body></html>`,
});
const stop = sampleExchange({
  n: 61,
  at: 415,
  step: 'stop/ask',
  method: 'POST',
  path: `/instances/${ID}/stop?region=eu-north`,
  answer: instance('STOPPING'),
});
const back = sampleExchange({ n: 62, at: 425, step: 'stop/read', path, answer: instance('PROVISIONING') });
const removed = sampleExchange({
  n: 63,
  at: 430,
  step: 'destroy/ask',
  method: 'DELETE',
  path,
  answer: instance('DESTROYING'),
});

const login: SshRecord = {
  kind: 'ssh',
  n: 1,
  step: 'online/ssh-first',
  sentAt: 258_000,
  endedAt: 278_000,
  instanceId: ID,
  key: 'first',
  host: '198.51.100.24',
  port: 22,
  username: 'ubuntu',
  command: 'true',
  rung: 'connect',
  message: `198.51.100.24:22 did not answer to TCP ${HOSTILE.ansi}`,
};

const skipped: Skipped = {
  kind: 'skipped',
  steps: ['volumes'],
  capability: 'volumes',
  reason: 'GET /volumes/locations was answered 404',
};

function resource(entry: number, at: number, changes: Partial<ResourceRecord>): ResourceRecord {
  const name = `berth-conf-7k2p-${String(entry).padStart(3, '0')}`;
  return {
    kind: 'resource',
    entry,
    type: 'instance',
    name,
    step: 'create/primary',
    state: 'unknown',
    at,
    pricePerHour: 0.34,
    ...changes,
  };
}

/** A run with every kind of verdict, two leftovers, and a hostile target. */
export const sampleRecords: readonly TranscriptRecord[] = [
  sampleRun(),
  catalog,
  resource(1, 3990, {}),
  created,
  resource(1, 4030, { state: 'made', id: ID }),
  ...polls,
  login,
  page,
  stop,
  back,
  resource(2, 426_000, { step: 'negative/no-keys' }),
  resource(2, 426_050, { step: 'negative/no-keys', state: 'refused' }),
  resource(3, 428_000, { step: 'negative/no-region', note: 'no answer came: the connection was reset' }),
  removed,
  skipped,
  resource(1, 460_000, { state: 'made', id: ID, note: `DELETE was answered 500 ${HOSTILE.ansi}` }),
  { kind: 'end', at: 471_300, reason: 'completed' },
];

const lost = polls.filter(({ answer }) => answer?.status === 404);
const findings: Readonly<Record<string, Finding>> = {
  'INS-404-001': {
    verdict: 'fail',
    of: 40,
    problems: lost.map((shown) => ({ expected: '200 with the instance', actual: '404 not_found', shown })),
  },
  'TRACE-PATH-001': {
    verdict: 'fail',
    of: 43,
    problems: [
      { expected: 'STOPPING, STOPPED or OFFLINE after STOPPING', actual: 'PROVISIONING', shown: back },
    ],
  },
  'SSH-LOGIN-001': {
    verdict: 'fail',
    of: 2,
    problems: [
      {
        expected: 'a login as ubuntu with the first key within seconds of ONLINE',
        actual: `no TCP connection to 198.51.100.24:22 ${HOSTILE.bidi}`,
        shown: login,
      },
    ],
  },
  'ERR-ENVELOPE-001': {
    verdict: 'fail',
    of: 1,
    problems: [
      {
        expected: 'Content-Type: application/json',
        actual: `text/html ${HOSTILE.html}${HOSTILE.xml}`,
        shown: page,
      },
      { expected: 'an object with `error`', actual: `<html>${'y'.repeat(5000)}`, shown: page },
    ],
  },
  'CFG-FIELDS-001': {
    verdict: 'fail',
    of: 12,
    problems: Array.from({ length: 9 }, (_, index) => ({
      expected: 'vcpus: an integer',
      actual: `configurations[${index}].vcpus is "8", a string`,
      shown: catalog,
    })),
  },
  'LAT-POLL-001': {
    verdict: 'fail',
    of: 1,
    problems: [
      {
        expected: 'a 95th percentile below 250 ms',
        actual: '412 ms of 40 reads',
        shown: polls[3] ?? catalog,
      },
    ],
  },
  'INS-FRESH-001': { verdict: 'not_tested', reason: 'only 2 changes of status were seen, and 5 are needed' },
  'STOP-RESUME-001': { verdict: 'not_tested', reason: 'the instance never came to be STOPPED' },
  'TOK-EXPIRES-001': {
    verdict: 'not_applicable',
    capability: 'token',
    reason: 'POST /auth/token was answered 404: this target has no token endpoint',
  },
  'VOL-LOCATION-001': { verdict: 'not_applicable', capability: 'volumes', reason: skipped.reason },
  'VOL-CREATE-001': { verdict: 'not_applicable', capability: 'volumes', reason: skipped.reason },
};

/** A check for each requirement. Those in `found` return that finding; all others pass. */
export function sampleChecks(found: Readonly<Record<string, Finding>> = findings): Check[] {
  return sampleRequirements.flatMap(({ checks = [] }) =>
    checks.map((id): Check => {
      const pass: Finding = {
        verdict: 'pass',
        reason: '43 answers, all as they must be',
        shown: [created, removed],
      };
      const level = id.startsWith('NEG') ? 'full' : 'lifecycle';
      return { id, level, scenarios: ['create', 'online'], judge: () => found[id] ?? pass };
    }),
  );
}

export function reportOf(records: readonly TranscriptRecord[], checks = sampleChecks()): Report {
  return toReport(records, judge(records, sampleRequirements, checks), sampleBasis);
}

export const sampleReport = reportOf(sampleRecords);

/** The report of a run without failures. */
export const greenReport = reportOf(
  [
    ...sampleRecords.filter(({ kind }) => kind === 'run' || kind === 'exchange'),
    resource(1, 3990, {}),
    resource(1, 432_000, { state: 'gone', id: ID }),
    { kind: 'end', at: 471_300, reason: 'completed' },
  ],
  sampleChecks({
    'TOK-EXPIRES-001': findings['TOK-EXPIRES-001'] ?? { verdict: 'not_tested', reason: '' },
    'VOL-LOCATION-001': { verdict: 'not_applicable', capability: 'volumes', reason: skipped.reason },
    'VOL-CREATE-001': { verdict: 'not_applicable', capability: 'volumes', reason: skipped.reason },
  }),
);
