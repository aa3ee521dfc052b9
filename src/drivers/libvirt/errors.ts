import type { FailureCode, Step } from '../../orchestrator/model/platform-driver.ts';

/** What virsh says of a thing that is not there, or is there already. */
export type VirshProblem =
  /** The host cannot be reached, or its libvirt does not answer: nothing is known. */
  | 'unreachable'
  /** The host refuses our credentials. */
  | 'refused'
  | 'no_domain'
  | 'no_volume'
  /** The pool lacks what a machine is made from. */
  | 'no_image'
  /** A domain of ours whose mark somebody removed. */
  | 'unmarked'
  | 'no_network'
  | 'no_pool'
  | 'exists'
  | 'not_running'
  | 'already_running'
  /** What an earlier call made is not whole. */
  | 'half_made'
  | 'no_space'
  | 'no_memory'
  | 'busy'
  | 'invalid'
  /** A server with a later claim has changed the resource: nothing was done. */
  | 'stale'
  /** The time of the call was over before the command began: nothing was done. */
  | 'expired'
  /** The call was given up while the command ran. */
  | 'aborted'
  /** The host lacks what commands that change something need: nothing was done. */
  | 'unprepared'
  | 'other';

/** A call of virsh that failed. */
export class VirshError extends Error {
  override readonly name = 'VirshError';
  readonly problem: VirshProblem;

  constructor(problem: VirshProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

/** It is of the host alone, and not of what was asked. */
export const tellsNothing = ({ problem }: VirshError): boolean =>
  problem === 'unreachable' || problem === 'refused';

const LIMITS: readonly VirshProblem[] = ['stale', 'expired', 'aborted', 'unprepared'];

/** It is of the call and its limits, and not of what was asked. */
export const isRefusal = ({ problem }: VirshError): boolean => LIMITS.includes(problem);

/** The words of libvirt, which are the same in each release since 7; the first that fits counts. */
const words: readonly [RegExp, VirshProblem][] = [
  [
    /authentication (failed|unavailable)|Permission denied|access denied|Host key verification failed/i,
    'refused',
  ],
  [
    /failed to connect to the hypervisor|Failed to connect socket|Cannot recv data|End of file while reading|client socket is closed|Unable to connect to server|Connection (refused|reset)|Could not resolve hostname|keepalive/i,
    'unreachable',
  ],
  // Also where the search for it failed: only the list of all domains proves that there is none.
  [/Domain not found|failed to get domain/, 'no_domain'],
  [/Storage volume not found/, 'no_volume'],
  [/Storage pool not found|storage pool '.*' is not active/, 'no_pool'],
  [/Network not found|network '.*' is not active/, 'no_network'],
  [/domain is not running|domain is not active/i, 'not_running'],
  [/domain is already running|Domain is already active/i, 'already_running'],
  [/already exists|exists already|already defined/i, 'exists'],
  [/No space left|not enough space|insufficient space/i, 'no_space'],
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

/** What an earlier call made cannot be completed: it is removed by an order, and made under another name. */
export const unfinished = (detail: string): Step<never> => ({
  outcome: 'failed',
  code: 'unfinished',
  sideEffect: 'certain',
  detail,
});

/** The failure of a call. `hasChanged`: commands that change something were begun, in it or in an earlier one. */
export function toFailure(error: unknown, hasChanged = true): Step<never> {
  if (!(error instanceof VirshError)) throw error;
  const code = codes[error.problem] ?? 'internal';
  if (code === 'unfinished') return unfinished(error.message);
  const sideEffect = isRefusal(error) && !hasChanged ? 'none' : 'possible';
  return { outcome: 'failed', code, sideEffect, detail: error.message };
}
