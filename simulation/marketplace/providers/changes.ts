import type { Configuration } from '../../../src/contract/configuration.ts';
import type { Changes } from '../../../src/contract/extensions.ts';
import type { PlainProvider } from '../../../test/support/doubles/plain-provider.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';

/** How often the provider has forgotten its cursors, as after a restart. */
const RESETS = 0.02;
/** How often it begins to list nothing for a while, although there are changes. */
const BACKLOGS = 0.01;
const LONGEST_BACKLOG_MS = 90_000;

export function announceChanges(configuration: Configuration): Configuration {
  const { extras } = configuration;
  return { ...configuration, extras: { ...extras, berth: { ...Object(extras?.['berth']), changes: true } } };
}

/** The instances of a provider that changed, in pages that may be cut. */
export class ProviderChanges {
  readonly #plain: PlainProvider;
  readonly #scheduler: Pick<Scheduler, 'now'>;
  readonly #chance: Chance;
  readonly #listed: string[] = [];
  /** What each instance was like when it was listed last. */
  readonly #known = new Map<string, string>();
  #epoch = 0;
  #behindUntil = 0;

  constructor(plain: PlainProvider, scheduler: Pick<Scheduler, 'now'>, chance: Chance) {
    this.#plain = plain;
    this.#scheduler = scheduler;
    this.#chance = chance;
  }

  hasAfter(cursor: string): boolean {
    this.#compare();
    return this.#placeOf(cursor) !== this.#listed.length;
  }

  page(since: string | null): Changes {
    this.#compare();
    const { now } = this.#scheduler;
    if (this.#chance.happens(RESETS)) this.#epoch++;
    if (this.#chance.happens(BACKLOGS)) this.#behindUntil = now + this.#chance.whole(0, LONGEST_BACKLOG_MS);
    const from = since === null ? undefined : this.#placeOf(since);
    const atMost = now < this.#behindUntil ? 0 : this.#chance.whole(1, 4);
    const end = this.#listed.length;
    const to = from === undefined ? end : Math.min(from + atMost, end);
    const ids = new Set(this.#listed.slice(from ?? to, to));
    return {
      cursor: `${this.#epoch} ${to}`,
      reset: from === undefined,
      changes: [...ids].map((id) => ({ kind: 'instance', id, version: to })),
      more: to < end,
    };
  }

  #placeOf(cursor: string): number | undefined {
    const [epoch, place] = cursor.split(' ').map(Number);
    return epoch === this.#epoch ? place : undefined;
  }

  #compare(): void {
    const there = new Map(this.#plain.instances.map((instance) => [instance.id, JSON.stringify(instance)]));
    for (const id of new Set([...this.#known.keys(), ...there.keys()])) {
      const now = there.get(id) ?? 'gone';
      if (this.#known.get(id) === now) continue;
      this.#known.set(id, now);
      this.#listed.push(id);
    }
  }
}
