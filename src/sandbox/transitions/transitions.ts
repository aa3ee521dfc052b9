import { z } from 'zod';
import { invalidRequest } from '../../contract/errors.ts';
import type { Carry } from '../../platform-model/platform.ts';
import { type FaultClock, NEVER_MS } from '../faults/fault.ts';
import { routeOf } from '../operations.ts';
import { phaseOf, phases, volumePhaseOf } from '../phases.ts';
import type { Layer, Targets } from '../provider.ts';
import { parseSetting, withFullName } from '../settings.ts';
import { endAt, partsUnderWay, type Transition } from './under-way.ts';

const scope = {
  phase: z.enum(phases).optional().meta({ description: 'Which transition. Default: all of them.' }),
  provider: z.string().optional().meta({ description: 'Default: every provider.' }),
  instance: z.string().optional().meta({ description: 'Only this instance, and no volume.' }),
  volume: z.string().optional().meta({ description: 'Only this volume, and no instance.' }),
};

/** How transitions of machines and volumes proceed. The last setting wins. */
export const transitionSchema = z.discriminatedUnion('mode', [
  z
    .strictObject({ mode: z.literal('immediate'), ...scope })
    .meta({ description: 'Transitions finish at once.' }),
  z
    .strictObject({ mode: z.literal('timed'), ms: z.number().min(0), ...scope })
    .meta({ description: 'Transitions take `ms` milliseconds.' }),
  z
    .strictObject({ mode: z.literal('polls'), polls: z.int().min(1), ...scope })
    .meta({ description: 'Transitions finish after this number of reads of the instance or volume.' }),
  z
    .strictObject({ mode: z.literal('manual'), ...scope })
    .meta({ description: 'Transitions finish on `finish`.' }),
  z
    .strictObject({ mode: z.literal('usual'), ...scope })
    .meta({ description: 'Transitions take the sandbox’s usual time.' }),
]);
export type TransitionSetting = z.infer<typeof transitionSchema>;

/** A transition that waits for polls, or for `finish`. */
interface Held extends Transition {
  provider: string;
  /** The id of its instance. Undefined for a volume. */
  instance: string | undefined;
  volume: string | undefined;
  /** Null if it waits for `finish`. */
  pollsLeft: number | null;
}

interface SavedTransitions {
  settings: TransitionSetting[];
  held: [key: string, held: Held][];
}

interface Deps {
  clock: FaultClock;
  /** Providers by name. */
  providers: Targets;
}

export class Transitions {
  readonly #deps: Deps;
  #settings: TransitionSetting[] = [];
  /** By provider and resource: a transition that begins replaces the one that it ends. */
  readonly #held = new Map<string, Held>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Adds a setting, for transitions that begin from now on. @throws {ApiError} */
  set(setting: TransitionSetting): void {
    const { providers } = this.#deps;
    const set = withFullName(parseSetting(transitionSchema, setting), [...providers.keys()]);
    assertCanMatch(set);
    this.#settings.unshift(set);
  }

  get settings(): readonly TransitionSetting[] {
    return this.#settings;
  }

  /** Transitions that wait for polls, or for {@link finish}. */
  held(): Omit<Held, 'ref' | 'parts'>[] {
    return this.underWay().map(({ ref: _ref, parts: _parts, ...held }) => held);
  }

  /** Ends held transitions: of one instance or volume, or all. Returns their number. */
  finish({ instance, volume }: { instance?: string | undefined; volume?: string | undefined } = {}): number {
    const meant = [...this.#held].filter(
      ([, held]) =>
        (instance === undefined || held.instance === instance) &&
        (volume === undefined || held.volume === volume),
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
    return { settings: [...this.#settings], held };
  }

  load({ settings, held }: SavedTransitions): void {
    this.#settings = [...settings];
    this.#held.clear();
    for (const [key, each] of held) this.#held.set(key, { ...each });
  }

  readonly layer: Layer = async ({ provider, request }, next) => {
    if (this.#held.size === 0) return next(request);
    const { pathname } = new URL(request.url);
    const { resource } = request.method === 'GET' ? routeOf(provider, 'GET', pathname) : {};
    const polled: [key: string, held: Held][] = [];
    for (const [key, held] of this.#held) {
      if (
        held.pollsLeft === null ||
        held.provider !== provider ||
        (held.instance ?? held.volume) !== resource
      )
        continue;
      held.pollsLeft--;
      if (held.pollsLeft === 0) polled.push([key, held]);
    }
    try {
      return await next(request);
    } finally {
      for (const [key, held] of polled) this.#end(key, held);
    }
  };

  carry(provider: string, own: Carry): Carry {
    return async (method, ref, call) => {
      const phase = phaseOf(method);
      const target = this.#deps.providers.get(provider);
      if (phase === undefined || ref === undefined || target === undefined || this.#isIdle())
        return own(method, ref, call);
      const resource = await target.resourceOf(ref);
      const underWay = () => partsUnderWay(target.platform, { ref, phase }, this.#deps.clock.now());
      return own(method, ref, () => {
        const before = underWay();
        const first = call();
        const parts = underWay().filter((part) => !before.includes(part));
        const hasBegun = parts.length > 0;
        return hasBegun && this.#decide(provider, { ref, phase, parts }, resource?.id) ? call() : first;
      });
    };
  }

  #isIdle(): boolean {
    return this.#settings.length === 0 && this.#held.size === 0;
  }

  /** Decides the end of a transition that has begun. Returns false if it takes its usual time. */
  #decide(provider: string, transition: Transition, id: string | undefined): boolean {
    const { phase, ref, parts } = transition;
    const key = `${provider}/${ref}/${parts.join()}`;
    this.#held.delete(key);
    const isOfVolume = volumePhaseOf(phase) !== undefined;
    const [instance, volume] = isOfVolume ? [undefined, id] : [id, undefined];
    const setting = this.#settings.find(
      (each) =>
        (each.phase ?? phase) === phase &&
        (each.provider ?? provider) === provider &&
        (each.instance ?? instance) === instance &&
        (each.volume ?? volume) === volume,
    );
    if (setting === undefined || setting.mode === 'usual') return false;
    if (setting.mode === 'immediate') return this.#endIn(0, provider, transition);
    if (setting.mode === 'timed') return this.#endIn(setting.ms, provider, transition);
    const pollsLeft = setting.mode === 'polls' ? setting.polls : null;
    this.#held.set(key, { ...transition, provider, instance, volume, pollsLeft });
    return this.#endIn(NEVER_MS, provider, transition);
  }

  #end(key: string, { provider, ...transition }: Held): void {
    this.#held.delete(key);
    const target = this.#deps.providers.get(provider);
    if (target === undefined || !this.#isUnderWay(provider, transition)) return;
    this.#endIn(0, provider, transition);
    target.wake(transition.ref);
  }

  #endIn(ms: number, provider: string, transition: Transition): true {
    const now = this.#deps.clock.now();
    const platform = this.#deps.providers.get(provider)?.platform;
    if (platform !== undefined) endAt(platform, transition, { at: now + ms, now });
    return true;
  }

  /** The held transitions that were not left in another way, such as a boot by a destroy. */
  underWay(): Held[] {
    return [...this.#held.values()].filter(({ provider, ...transition }) =>
      this.#isUnderWay(provider, transition),
    );
  }

  #isUnderWay(provider: string, { parts, ...of }: Transition): boolean {
    const platform = this.#deps.providers.get(provider)?.platform;
    if (platform === undefined) return false;
    return partsUnderWay(platform, of, this.#deps.clock.now()).some((part) => parts.includes(part));
  }
}

/** Refuses a setting that no transition ever has. @throws {ApiError} */
function assertCanMatch({ phase, instance, volume }: TransitionSetting): void {
  const isOfVolume = phase === undefined ? volume !== undefined : volumePhaseOf(phase) !== undefined;
  const [path, given] = isOfVolume ? (['instance', instance] as const) : (['volume', volume] as const);
  if (given === undefined) return;
  const whose =
    phase === undefined ? 'give an instance or a volume, not both' : `no ${path} has the phase ${phase}`;
  throw invalidRequest([{ path, message: whose }]);
}
