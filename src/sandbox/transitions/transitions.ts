import { z } from 'zod';
import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Answer, Carry, Method } from '../../platform-model/platform.ts';
import type { Phase } from '../../platform-model/rules.ts';
import { resourceOf } from '../faults/arming.ts';
import type { FaultClock } from '../faults/fault.ts';
import type { FaultTarget } from '../faults/faults.ts';
import type { SandboxMachine } from '../machines.ts';
import type { Layer } from '../provider.ts';
import { parseSetting, withFullName } from '../settings.ts';

const phases = ['boot', 'stop', 'start', 'restart', 'destroy'] as const satisfies Phase[];

const scope = {
  phase: z.enum(phases).optional().meta({ description: 'Which transition. Default: all of them.' }),
  provider: z.string().optional().meta({ description: 'Default: every provider.' }),
  instance: z.string().optional().meta({ description: 'Default: every instance.' }),
  account: z.string().optional().meta({ description: 'Only the instances of this account.' }),
};

/** How transitions of machines proceed. The last setting wins. */
export const transitionSchema = z.discriminatedUnion('mode', [
  z
    .strictObject({ mode: z.literal('immediate'), ...scope })
    .meta({ description: 'Transitions finish at once.' }),
  z
    .strictObject({ mode: z.literal('timed'), ms: z.number().min(0), ...scope })
    .meta({ description: 'Transitions take `ms` milliseconds.' }),
  z
    .strictObject({ mode: z.literal('polls'), polls: z.int().min(1), ...scope })
    .meta({ description: 'Transitions finish after this number of reads of the instance.' }),
  z
    .strictObject({ mode: z.literal('manual'), ...scope })
    .meta({ description: 'Transitions finish on `finish`.' }),
  z
    .strictObject({ mode: z.literal('usual'), ...scope })
    .meta({ description: 'Transitions take the sandbox’s usual time.' }),
]);
export type TransitionSetting = z.infer<typeof transitionSchema>;

/** A transition that waits for polls, or for `finish`. */
interface Held {
  provider: string;
  ref: OwnerRef;
  instance: string | undefined;
  account: string | undefined;
  phase: Phase;
  /** Null if it waits for `finish`. */
  pollsLeft: number | null;
}

interface SavedTransitions {
  settings: TransitionSetting[];
  held: [key: string, held: Held][];
  decided: [key: string, step: string][];
}

interface Deps {
  clock: FaultClock;
  /** Providers by name. */
  providers: ReadonlyMap<string, FaultTarget>;
}

/** Longer than any wait. */
const NEVER_MS = 10 * 365 * 86_400_000;
/** Poll interval of a held transition. */
const ASK_AGAIN_MS = 1_000;
const phaseOf: Partial<Record<Method, Phase>> = {
  create: 'boot',
  stop: 'stop',
  start: 'start',
  restart: 'restart',
  destroy: 'destroy',
};

export class Transitions {
  readonly #deps: Deps;
  #settings: TransitionSetting[] = [];
  /** Both maps are by provider and number of the machine. Each transition is decided once. */
  readonly #held = new Map<string, Held>();
  readonly #decided = new Map<string, string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Adds a setting, for transitions that begin from now on. @throws {ApiError} */
  set(setting: TransitionSetting): void {
    const { providers } = this.#deps;
    this.#settings.unshift(withFullName(parseSetting(transitionSchema, setting), providers));
  }

  get settings(): readonly TransitionSetting[] {
    return this.#settings;
  }

  /** Transitions that wait for polls, or for {@link finish}. */
  held(): Omit<Held, 'ref'>[] {
    return [...this.#held.values()].map(({ ref: _ref, ...held }) => held);
  }

  /** Instances with a transition that waits only for {@link finish}. */
  waiting(): ReadonlySet<string> {
    const held = [...this.#held.values()].filter(({ pollsLeft }) => pollsLeft === null);
    return new Set(held.flatMap(({ instance }) => instance ?? []));
  }

  /** Ends held transitions: of one instance, of an account, or all. Returns their number. */
  finish({
    instance,
    account,
  }: {
    instance?: string | undefined;
    account?: string | undefined;
  } = {}): number {
    const meant = [...this.#held].filter(
      ([, held]) =>
        (instance === undefined || held.instance === instance) &&
        (account === undefined || held.account === account),
    );
    for (const [key, held] of meant) this.#end(key, held);
    return meant.length;
  }

  /** Restores the usual durations, and ends held transitions. */
  clear(): void {
    this.#settings = [];
    this.finish();
  }

  save(): SavedTransitions {
    const held = [...this.#held].map(([key, each]): [string, Held] => [key, { ...each }]);
    return { settings: [...this.#settings], held, decided: [...this.#decided] };
  }

  load({ settings, held, decided }: SavedTransitions): void {
    this.#settings = [...settings];
    this.#held.clear();
    this.#decided.clear();
    for (const [key, each] of held) this.#held.set(key, { ...each });
    for (const [key, step] of decided) this.#decided.set(key, step);
  }

  readonly layer: Layer = async ({ provider, request }, next) => {
    const { pathname } = new URL(request.url);
    const instance = request.method === 'GET' ? resourceOf(pathname) : undefined;
    for (const [key, held] of this.#held) {
      if (held.pollsLeft === null || held.provider !== provider || held.instance !== instance) continue;
      held.pollsLeft--;
      if (held.pollsLeft === 0) this.#end(key, held);
    }
    return next(request);
  };

  carry(provider: string, own: Carry): Carry {
    return async (method, ref, call) => {
      const phase = phaseOf[method];
      if (phase === undefined || ref === undefined || this.#isIdle()) return own(method, ref, call);
      const owner = await this.#deps.providers.get(provider)?.ownerOf(ref);
      const answer = await own(method, ref, () => {
        const first = call();
        return this.#decide(provider, ref, phase, owner) ? call() : first;
      });
      return this.#isHeld(provider, ref) ? askedAgainSoon(answer) : answer;
    };
  }

  #isIdle(): boolean {
    return this.#settings.length === 0 && this.#held.size === 0;
  }

  /** Decides the end of a transition that has begun. Returns whether the decision is new. */
  #decide(
    provider: string,
    ref: OwnerRef,
    phase: Phase,
    owner: { id: string; account: string } | undefined,
  ): boolean {
    const { clock } = this.#deps;
    const machine = this.#machine(provider, ref);
    if (machine === undefined || !isUnderWay(machine, phase, clock.now())) return false;
    const key = `${provider}/${machine.number}`;
    const step = `${phase}/${machine.boots}`;
    if (this.#decided.get(key) === step) return false;
    this.#decided.set(key, step);
    const setting = this.#settings.find(
      (each) =>
        (each.phase ?? phase) === phase &&
        (each.provider ?? provider) === provider &&
        (each.instance === undefined || each.instance === owner?.id) &&
        (each.account === undefined || each.account === owner?.account),
    );
    if (setting === undefined || setting.mode === 'usual') return false;
    if (setting.mode === 'immediate') return this.#endAt(provider, machine, phase, clock.now());
    if (setting.mode === 'timed') return this.#endAt(provider, machine, phase, clock.now() + setting.ms);
    const pollsLeft = setting.mode === 'polls' ? setting.polls : null;
    this.#held.set(key, { provider, ref, instance: owner?.id, account: owner?.account, phase, pollsLeft });
    return this.#endAt(provider, machine, phase, clock.now() + NEVER_MS);
  }

  #end(key: string, { provider, ref, phase }: Held): void {
    this.#held.delete(key);
    const machine = this.#machine(provider, ref);
    if (machine !== undefined && isUnderWay(machine, phase, this.#deps.clock.now()))
      this.#endAt(provider, machine, phase, this.#deps.clock.now());
  }

  #endAt(provider: string, machine: SandboxMachine, phase: Phase, at: number): true {
    const platform = this.#deps.providers.get(provider)?.platform;
    platform?.machines.change(
      machine,
      phase === 'restart' && machine.power === 'running' ? { bootedAt: at } : { until: at },
    );
    return true;
  }

  #isHeld(provider: string, ref: OwnerRef): boolean {
    const machine = this.#machine(provider, ref);
    return machine !== undefined && this.#held.has(`${provider}/${machine.number}`);
  }

  #machine(provider: string, ref: OwnerRef): SandboxMachine | undefined {
    return this.#deps.providers.get(provider)?.platform.machines.of(ref)[0];
  }
}

function isUnderWay({ power, bootedAt, isRestarting }: SandboxMachine, phase: Phase, now: number): boolean {
  switch (phase) {
    case 'boot':
      return power === 'building';
    case 'stop':
      return power === 'stopping';
    case 'start':
      return power === 'starting';
    case 'destroy':
      return power === 'destroying';
    case 'restart':
      return isRestarting === true || (power === 'running' && (bootedAt ?? 0) > now);
  }
}

function askedAgainSoon<T extends Answer>(answer: T): T {
  const isPending = 'outcome' in answer && answer.outcome === 'pending';
  return isPending ? { ...answer, pollAfterMs: Math.min(ASK_AGAIN_MS, answer.pollAfterMs) } : answer;
}
