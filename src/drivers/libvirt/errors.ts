import type { FailureCode, Step } from '../../orchestrator/model/platform-driver.ts';
import { failed, unfinished } from '../../platform-model/steps.ts';

export type VirshProblem =
  /** The host or its libvirt does not answer: nothing is known. */
  | 'unreachable'
  /** The host answers, but not this question in time: libvirt waits for a domain, and nothing is known of that one. */
  | 'late'
  /** The host refuses Berth's credentials. */
  | 'refused'
  | 'no_domain'
  | 'no_volume'
  /** The pool does not have the machine's base image. */
  | 'no_image'
  /** A domain of Berth whose mark was removed. */
  | 'unmarked'
  | 'no_network'
  | 'no_pool'
  | 'exists'
  | 'not_running'
  | 'already_running'
  /** An earlier call left a partial result. */
  | 'half_made'
  | 'no_space'
  | 'no_memory'
  | 'busy'
  | 'invalid'
  /** A server with a higher fence has changed the resource: the command had no effect. */
  | 'stale'
  /** The call's deadline passed before the command began: it had no effect. */
  | 'expired'
  /** The call was cancelled while the command ran. */
  | 'aborted'
  /** The host lacks something that changing commands need: the command had no effect. */
  | 'unprepared'
  | 'other';

export class VirshError extends Error {
  override readonly name = 'VirshError';
  readonly problem: VirshProblem;

  constructor(problem: VirshProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

export const hasProblem = (error: unknown, ...problems: readonly VirshProblem[]): boolean =>
  error instanceof VirshError && problems.includes(error.problem);

/** For `catch`: returns the value for one of these problems, and throws any other error. */
export function onProblem<T>(problems: VirshProblem | readonly VirshProblem[], value: T) {
  return (error: unknown): T => {
    if (hasProblem(error, ...[problems].flat())) return value;
    throw error;
  };
}

/** For `catch`: the answer of a read that failed. Other errors are thrown. */
export function unknownOf(error: unknown): { answer: 'unknown'; reason: string } {
  if (error instanceof VirshError) return { answer: 'unknown', reason: error.message };
  throw error;
}

/** Whether the failure concerns only the host. It then gives no information on the resource. */
export const isHostFailure = ({ problem }: VirshError): boolean =>
  problem === 'unreachable' || problem === 'refused';

const LIMITS: readonly VirshProblem[] = ['stale', 'expired', 'aborted', 'unprepared'];

/** Whether the failure comes from the call's limits. It then gives no information on the resource. */
export const isRefusal = ({ problem }: VirshError): boolean => LIMITS.includes(problem);

/** Libvirt's messages, unchanged in each release since 7. The first match counts. */
const words: readonly [RegExp, VirshProblem][] = [
  [
    /authentication (failed|unavailable)|Permission denied|access denied|Host key verification failed/i,
    'refused',
  ],
  [
    /failed to connect to the hypervisor|Failed to connect socket|Cannot recv data|End of file while reading|client socket is closed|Unable to connect to server|Connection (refused|reset)|Could not resolve hostname|keepalive/i,
    'unreachable',
  ],
  // Libvirt also reports this if the lookup itself failed. Only the list of all domains proves that a domain does not
  // exist.
  [/Domain not found|failed to get domain/, 'no_domain'],
  [/Storage volume not found/, 'no_volume'],
  [/Storage pool not found|storage pool '.*' is not active/, 'no_pool'],
  [/Network not found|network '.*' is not active/, 'no_network'],
  [/domain is not running|domain is not active/i, 'not_running'],
  [/domain is already running|Domain is already active/i, 'already_running'],
  [/already exists|exists already|already defined/i, 'exists'],
  [/No space left|not enough space|insufficient space|Read-only file system/i, 'no_space'],
  [/[Cc]annot allocate memory|cannot set up guest memory/, 'no_memory'],
  [/asynchronous jobs|cannot acquire state change lock|resource busy|still in use|is in use/i, 'busy'],
  [/XML error|unsupported configuration|XML document failed to validate/i, 'invalid'],
];

export function problemOf(stderr: string): VirshProblem {
  return words.find(([pattern]) => pattern.test(stderr))?.[1] ?? 'other';
}

const codes: Partial<Record<VirshProblem, FailureCode>> = {
  unreachable: 'transient',
  refused: 'auth',
  busy: 'transient',
  late: 'transient',
  stale: 'transient',
  expired: 'transient',
  aborted: 'transient',
  unprepared: 'transient',
  no_domain: 'gone',
  no_volume: 'gone',
  no_image: 'image_missing',
  unmarked: 'conflict',
  exists: 'already_exists',
  half_made: 'unfinished',
  no_space: 'capacity',
  no_memory: 'capacity',
  invalid: 'invalid',
};

/** The failure of a call. `hasChanged`: this call or an earlier one has started a changing command. */
export function toFailure(error: unknown, hasChanged = true): Step<never> {
  if (!(error instanceof VirshError)) throw error;
  const code = codes[error.problem] ?? 'internal';
  if (code === 'unfinished') return unfinished(error.message);
  const sideEffect = isRefusal(error) && !hasChanged ? 'none' : 'possible';
  return failed(code, error.message, sideEffect);
}
