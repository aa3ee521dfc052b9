import type { Mutant } from '../mutant.ts';
import type { ReferenceRequest } from '../reference/exchange.ts';
import type { Rules } from '../reference/rules.ts';

/** How long a plain run takes, and its patience with a machine that is not destroyed. */
const PLAIN_RUN_MS = 70 * 60_000;

/** Whether a request shows that the suite is there; undefined if it shows nothing about that. */
type Sign = (request: ReferenceRequest) => boolean | undefined;

const byUserAgent: Sign = ({ headers }) => headers['user-agent']?.startsWith('berth-conformance') === true;

const byName: Sign = (request) =>
  isCreate(request) ? request.text.includes('"name":"berth-conf-') : undefined;

const byKeyComment: Sign = (request) =>
  isCreate(request) ? /ssh-ed25519 \S+ berth-conformance-/.test(request.text) : undefined;

/** A marketplace asks for nothing that does not exist, and sends nothing that is malformed. */
const byBadRequest: Sign = ({ route, method, path }) =>
  route === undefined && !(method === 'POST' && path === '/auth/token') ? true : undefined;

/** Servers that behave well only while they recognise the suite. A usual run of each is CONFORMANT. */
export const recognitionMutants: readonly Mutant[] = [
  {
    id: 'destroys-for-the-user-agent-of-the-suite-only',
    breaks: 'DELETE destroys the instance.',
    reddens: ['DEL-200-001', 'DEL-AGAIN-001', 'TRACE-FRESH-001'],
    ...inPlain(byUserAgent, (isSuite, hit) => ({
      takesEffect: (_instance, operation) => operation !== 'delete' || isSuite() || hit(),
    })),
  },
  {
    id: 'opens-ssh-for-names-of-the-suite-only',
    breaks: 'ONLINE means running and reachable, with a live SSH endpoint.',
    reddens: ['SSH-LIVE-001'],
    ...inPlain(byName, (isSuite, hit, rules) => ({
      sshListens: (instance, status) => rules.sshListens(instance, status) && (isSuite() || hit()),
    })),
  },
  {
    id: 'injects-keys-of-the-suite-only',
    breaks: 'ssh_keys are injected.',
    reddens: ['SSH-KEYS-001', 'SSH-START-001'],
    ...inPlain(byKeyComment, (isSuite, hit, rules) => ({
      mayLogin: (instance, attempt) => rules.mayLogin(instance, attempt) && (isSuite() || hit()),
    })),
  },
  {
    id: 'keeps-the-disk-after-a-bad-request-only',
    breaks: 'A stop keeps the disk.',
    reddens: ['INS-DISK-001'],
    ...inPlain(byBadRequest, (isSuite, hit, rules) => ({
      diskAfterStart(instance, disk) {
        const kept = rules.diskAfterStart(instance, disk);
        return isSuite() || hit() ? kept : { ...kept, files: new Map() };
      },
    })),
  },
];

function isCreate({ route }: ReferenceRequest): boolean {
  return route === 'POST /instances';
}

/** A deviation in a plain run, where nothing has shown that the suite is there. `hit` returns false. */
function inPlain(
  sign: Sign,
  change: (isSuite: () => boolean, hit: () => false, rules: Rules) => Partial<Rules>,
): Pick<Mutant, 'behave' | 'run' | 'takesMs'> {
  return {
    run: { plain: true },
    takesMs: PLAIN_RUN_MS,
    behave(rules, hit) {
      let isSeen = false;
      const hits = (): false => {
        hit();
        return false;
      };
      return {
        ...rules,
        ...change(() => isSeen, hits, rules),
        needsCredential(request) {
          isSeen = sign(request) ?? isSeen;
          return rules.needsCredential(request);
        },
      };
    },
  };
}
