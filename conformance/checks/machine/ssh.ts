import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notTested, type Problem } from '../../evidence/finding.ts';
import { isLoggedIn, LOOPBACK, leadsToItself } from '../../evidence/logins.ts';
import { OBSERVED_MS } from '../../scenarios/instances/observe.ts';
import { stringField } from '../../text/json.ts';
import { duration } from '../../text/wording.ts';
import type { SshRecord } from '../../transcript/records.ts';
import type { Check } from '../check.ts';
import { judgeReady } from './ready.ts';

const VM_LIMIT_MS = 10 * 60_000;
const VM_TARGET_MS = 5 * 60_000;
/** The logins with an injected key while the instance is ONLINE, up to its stop and after its start. */
const FIRST_LIFE = ['online/login-first', 'online/login-second', 'observe/login'];
const AFTER_START = ['start/login', 'destroy/login-before'];
/** The logins to instances of the run that are gone. */
const GONE = ['destroy/login', 'race/login-gone', 'companion/login-gone', 'elsewhere/login-gone'];

export const sshChecks: readonly Check[] = [
  {
    id: 'INS-ONLINE-001',
    level: 'lifecycle',
    scenarios: ['boot', 'online'],
    judge: (evidence) =>
      judgeEach(
        evidence.instances.flatMap(({ observations }) =>
          observations.filter(({ status }) => status === 'ONLINE'),
        ),
        'reads of an ONLINE instance',
        ({ instance }) =>
          stringField(instance, 'public_ip')
            ? undefined
            : { expected: 'a public_ip', actual: 'ONLINE without one' },
        ({ exchange }) => exchange,
      ),
  },
  {
    id: 'INS-READY-001',
    level: 'lifecycle',
    scenarios: ['boot'],
    judge: (evidence) => judgeReady(evidence, VM_LIMIT_MS),
  },
  {
    id: 'INS-READY-002',
    level: 'lifecycle',
    scenarios: ['boot'],
    judge: (evidence) => judgeReady(evidence, VM_TARGET_MS),
  },
  {
    id: 'SSH-LIVE-001',
    level: 'lifecycle',
    scenarios: ['observe'],
    judge: judgeLive,
  },
  {
    id: 'SSH-KEYS-001',
    level: 'lifecycle',
    scenarios: ['observe'],
    judge: (evidence) =>
      ofThoseThatAnswered(keyLogins(evidence), (login) =>
        isLoggedIn(login)
          ? undefined
          : { expected: `the ${login.key} of the two keys in ssh_keys logs in`, actual: describe(login) },
      ),
  },
  {
    id: 'SSH-KEYS-002',
    level: 'lifecycle',
    scenarios: ['online'],
    judge: (evidence) =>
      ofThoseThatAnswered(evidence.loginsAt('online/login-other'), (login) =>
        isLoggedIn(login)
          ? { expected: 'a key that was never injected is refused', actual: 'it logged in' }
          : undefined,
      ),
  },
  {
    id: 'SSH-KEYS-003',
    level: 'full',
    scenarios: ['companion', 'companion-alone'],
    judge: (evidence) => ofThoseThatAnswered(evidence.loginsAt('companion/login-foreign'), foreignKeyProblem),
  },
  {
    id: 'SSH-KEYS-004',
    level: 'full',
    scenarios: ['companion', 'companion-alone'],
    judge: (evidence) =>
      ofThoseThatAnswered(evidence.loginsAt('companion/login-second', 'companion/login-third'), (login) =>
        isLoggedIn(login)
          ? undefined
          : {
              expected: `the ${login.key} key logs in, of an Ed25519, an ECDSA and an RSA key in ssh_keys`,
              actual: describe(login),
            },
      ),
  },
  {
    id: 'SSH-KEYS-005',
    level: 'full',
    scenarios: ['companion', 'race', 'elsewhere', 'elsewhere-end'],
    judge: (evidence) =>
      ofThoseThatAnswered(
        evidence.loginsAt('race/login-foreign', 'elsewhere/login-foreign'),
        foreignKeyProblem,
      ),
  },
  {
    id: 'SSH-STOP-001',
    level: 'lifecycle',
    scenarios: ['stop'],
    judge: (evidence) => judgeClosed(evidence, ['stop/login'], 'STOPPED'),
  },
  {
    id: 'SSH-GONE-001',
    level: 'lifecycle',
    scenarios: ['online', 'destroy'],
    judge: (evidence) => {
      evidence.loginsAt('destroy/login');
      return judgeClosed(evidence, GONE, 'gone');
    },
  },
  {
    id: 'SSH-START-001',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: (evidence) =>
      ofThoseThatAnswered(evidence.loginsAt(...AFTER_START), (login) =>
        isLoggedIn(login) ? undefined : { expected: 'the key logs in again', actual: describe(login) },
      ),
  },
  {
    id: 'INS-IP-001',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: judgeSameAddress,
  },
  {
    id: 'SSH-HOST-001',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: judgeSameHostKey,
  },
];

function foreignKeyProblem(login: SshRecord): Problem | undefined {
  return isLoggedIn(login)
    ? { expected: 'a key of another instance is refused', actual: `it logged in to ${login.instanceId}` }
    : undefined;
}

/** The logins with an injected key, to the first instance and with the second key to the others. */
function keyLogins(evidence: Evidence): SshRecord[] {
  const others = ['companion/login-second', 'race/login-second', 'elsewhere/login-second'];
  return [
    ...evidence.loginsAt(...FIRST_LIFE),
    ...evidence.logins.filter(({ step }) => others.includes(step)),
  ];
}

/** Whether a login reached an SSH server that asked for a key. */
function answersSsh({ rung }: SshRecord): boolean {
  return rung === 'authenticate' || isLoggedIn({ rung });
}

/** Whether an SSH server answered that offers no algorithm of the suite's. */
function sharesNoAlgorithm({ rung, message }: SshRecord): boolean {
  return rung === 'handshake' && message?.startsWith('no common algorithms') === true;
}

function describe({ rung, message, host, port, username }: SshRecord): string {
  const at = `${username}@${host}:${port}`;
  return rung === 'done' ? `it logged in to ${at}` : `${at}: ${message ?? `it came no further than ${rung}`}`;
}

function eachLogin(
  logins: readonly SshRecord[],
  what: string,
  problemOf: (login: SshRecord) => Problem | undefined,
): Finding {
  return judgeEach(logins, what, problemOf, (login) => login);
}

/** If no login of the run succeeded and none was refused, the network of this machine may be the cause. */
function judgeLive(evidence: Evidence): Finding {
  const logins = evidence.loginsAt(...FIRST_LIFE, ...AFTER_START);
  const isCutOff = ({ rung, message }: SshRecord): boolean =>
    rung === 'connect' && message?.includes('refused') !== true;
  const [first] = logins;
  if (first !== undefined && leadsToItself(first) && logins.every(isCutOff))
    return notTested(`${describe(first)}. ${LOOPBACK}`);
  if (first !== undefined && logins.every(isCutOff))
    return notTested(
      `${describe(first)}; it may be that this machine may not open SSH connections outward: \`doctor --ssh-host HOST:PORT\` tries it`,
    );
  const foreign = logins.find(sharesNoAlgorithm);
  if (foreign !== undefined && logins.every((login) => answersSsh(login) || sharesNoAlgorithm(login)))
    return notTested(`an SSH server answered that the suite cannot log in to: ${describe(foreign)}`);
  const finding = eachLogin(logins, 'logins to an ONLINE instance', (login) =>
    answersSsh(login) ? undefined : { expected: 'a live SSH endpoint', actual: describe(login) },
  );
  if (finding.verdict !== 'pass') return finding;
  const [last] = evidence.loginsAt('observe/login');
  const observedMs = last === undefined ? 0 : last.sentAt - onlineAt(evidence, last.instanceId);
  return observedMs >= OBSERVED_MS
    ? { ...finding, reason: `it answered SSH when it had been ONLINE for ${duration(observedMs)}` }
    : notTested(
        `the instance was observed for ${duration(observedMs)}, and it takes ${duration(OBSERVED_MS)}: --observe-s ${OBSERVED_MS / 1000}`,
      );
}

/** When a read first showed the instance ONLINE. */
function onlineAt({ instances }: Evidence, id: string): number {
  const observations = instances.find((timeline) => timeline.id === id)?.observations ?? [];
  const online = observations.find(({ status }) => status === 'ONLINE');
  return online?.exchange.sentAt ?? Number.POSITIVE_INFINITY;
}

/** A login that reached no SSH server says nothing about keys. */
function ofThoseThatAnswered(
  logins: readonly SshRecord[],
  problemOf: (login: SshRecord) => Problem | undefined,
): Finding {
  const answeredExchanges = logins.filter(answersSsh);
  const [first] = logins;
  if (answeredExchanges.length === 0 && first !== undefined)
    return notTested(`no SSH endpoint answered: ${describe(first)}`);
  return eachLogin(answeredExchanges, 'logins', problemOf);
}

/**
 * The endpoint is closed or, behind a shared address, now belongs to another machine or a gateway that no longer
 * knows the user.
 */
function judgeClosed(evidence: Evidence, steps: readonly string[], state: string): Finding {
  const keys = new Map(
    evidence.logins.filter(isLoggedIn).map(({ instanceId, hostKey }) => [instanceId, hostKey]),
  );
  const isOwnHostKey = keys.size > 1 && new Set(keys.values()).size === keys.size;
  return eachLogin(evidence.loginsAt(...steps), `logins to an instance that is ${state}`, (login) => {
    const isSame = login.hostKey !== undefined && login.hostKey === keys.get(login.instanceId);
    return isLoggedIn(login) || (answersSsh(login) && isOwnHostKey && isSame)
      ? {
          expected: `the SSH endpoint is closed once the instance is ${state}`,
          actual: `it answers: ${describe(login)}`,
        }
      : undefined;
  });
}

function judgeSameAddress(evidence: Evidence): Finding {
  const [before] = evidence.loginsAt('online/login-first');
  const [after] = evidence.loginsAt('start/login');
  if (before === undefined || after === undefined)
    return notTested('there was no login on both sides of a stop');
  return eachLogin([after], 'starts', () =>
    after.host === before.host
      ? undefined
      : { expected: `public_ip ${before.host}, as before the stop`, actual: `public_ip ${after.host}` },
  );
}

function judgeSameHostKey(evidence: Evidence): Finding {
  const before = evidence.loginsAt('online').findLast(isLoggedIn)?.hostKey;
  const after = evidence.loginsAt('start/login').filter(isLoggedIn);
  if (before === undefined || after.length === 0)
    return notTested('no login succeeded on both sides of a stop');
  return eachLogin(after, 'starts', ({ hostKey }) =>
    hostKey === before
      ? undefined
      : { expected: `the host key ${before}, as before the stop`, actual: `the host key ${hostKey}` },
  );
}
