import type { Actor } from '../../src/operator-kit/model.ts';
import {
  type CordonRecord,
  type CordonSubject,
  concerns,
  isActive,
  isOver,
  type Placed,
} from '../../src/orchestrator/model/cordon.ts';
import {
  type CordonDeps,
  type CordonRow,
  cancelMaintenance,
  cordon,
  planMaintenance,
  uncordon,
} from '../../src/orchestrator/operate/actions/cordons.ts';
import { ActionRefused } from '../../src/orchestrator/operate/actions/refused.ts';
import type { Chance } from '../kernel/chance.ts';
import type { OrchestratorWorld } from './replicas/replica.ts';

const OPERATOR: Actor = { name: 'operator', source: 'cli', address: null };
/** A server that read its clock before it waited for the database learns so much later that a window has begun, or is over. */
const CLOCKS_AGREE_WITHIN_MS = 15_000;

type CordonWorld = OrchestratorWorld & {
  readonly sites: ReadonlyMap<string, unknown>;
  readonly scenario: { readonly cordonRate: number };
};

/** The operator who cordons regions, offers and platforms, announces maintenance, and takes either back. */
export class OperatorCordons {
  readonly #world: CordonWorld;
  readonly #chance: Chance;
  /** By id: what the operator was told of, and has not begun to take back. */
  readonly #set = new Map<string, CordonRecord>();

  constructor(world: CordonWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** Those that stand for every server, whatever it did meanwhile. Where clocks were wrong none with a time is one. */
  get standing(): CordonRecord[] {
    const { scheduler, tally } = this.#world;
    return [...this.#set.values()].filter((one) => {
      if (!isTimed(one)) return true;
      const begun = one.isMaintenance ? scheduler.now - CLOCKS_AGREE_WITHIN_MS : scheduler.now;
      return tally.clockJumps === 0 && isActive(one, begun) && !isOver(one, scheduler.now);
    });
  }

  /** Whether one may keep it from being sold, by the clock of any server. */
  mayKeep(placed: Placed): boolean {
    const before = this.#world.scheduler.now - CLOCKS_AGREE_WITHIN_MS;
    return [...this.#set.values()].some((one) => concerns(one, placed) && !isOver(one, before));
  }

  /** Sets one, announces one, or takes one back, at the rate of the scenario. */
  async change(): Promise<void> {
    const chance = this.#chance;
    if (!chance.happens(this.#world.scenario.cordonRate)) return;
    const known = [...this.#set.values()];
    if (known.length > 0 && chance.happens(0.5)) return this.#takeBack(chance.pick(known));
    const now = Math.ceil(this.#world.scheduler.now);
    const subject = this.#drawSubject();
    const since = chance.happens(0.3) ? now + chance.whole(5_000, 120_000) : null;
    const until =
      since !== null || chance.happens(0.5) ? (since ?? now) + chance.whole(20_000, 900_000) : null;
    const request = { ...subject, until: until === null ? undefined : toTime(until) };
    const added = fromRow(
      since === null
        ? await cordon.perform(this.#deps, OPERATOR, request)
        : await planMaintenance.perform(this.#deps, OPERATOR, { ...request, from: toTime(since) }),
    );
    for (const { id } of known.filter(
      (one) => !one.isMaintenance && !added.isMaintenance && isOn(one, added),
    ))
      this.#set.delete(id);
    this.#set.set(added.id, added);
    this.#note(added, since === null ? 'cordons' : 'announces maintenance of');
  }

  /** Once no fault happens any more, what a wrong clock could be wrong about is taken back; the rest stands. */
  async takeBackTimed(): Promise<void> {
    for (const one of [...this.#set.values()].filter(isTimed)) await this.#takeBack(one);
  }

  async #takeBack(one: CordonRecord): Promise<void> {
    this.#set.delete(one.id);
    this.#note(one, 'takes back the cordon of');
    const isThere = (await this.#deps.store.read.cordons.list()).some(({ id }) => id === one.id);
    if (!isThere) return;
    // A server deletes what is over, also between our look and our order.
    const unlessGone = (error: unknown): undefined => {
      if (error instanceof ActionRefused && error.code === 'not_found') return undefined;
      throw error;
    };
    if (one.isMaintenance) {
      await cancelMaintenance.perform(this.#deps, OPERATOR, { maintenanceId: one.id }).catch(unlessGone);
    } else if (!isOver(one, this.#world.scheduler.now)) {
      const { kind, name, platform } = one;
      const subject = { kind, name, platform: platform ?? undefined };
      const removed = await uncordon.perform(this.#deps, OPERATOR, subject).catch(unlessGone);
      for (const { id } of removed?.cordons ?? []) this.#set.delete(id);
    }
  }

  #drawSubject(): Pick<CordonSubject, 'kind' | 'name'> {
    const { catalog, sites } = this.#world;
    const kind = this.#chance.pick(['region', 'offer', 'offer', 'platform'] as const);
    const names = { region: catalog.regions, offer: catalog.offers, platform: sites }[kind].keys();
    return { kind, name: this.#chance.pick([...names]) };
  }

  get #deps(): CordonDeps {
    const { database, scheduler, catalog, sites } = this.#world;
    database.writer = null;
    const platforms = new Map([...sites.keys()].map((name) => [name, { placesOnHosts: false }]));
    const clock = { now: () => Math.ceil(scheduler.now) };
    return { store: database.store, clock, random: this.#chance, sold: { catalog, platforms } };
  }

  #note({ kind, name, id, until }: CordonRecord, what: string): void {
    this.#world.journal.note(
      'operator',
      `${what} ${kind} ${name} (${id}${until === null ? '' : ', for a time'})`,
    );
  }
}

const isTimed = ({ until, isMaintenance }: CordonRecord): boolean => until !== null || isMaintenance;

function isOn(one: CordonSubject, other: CordonSubject): boolean {
  return one.kind === other.kind && one.name === other.name && one.platform === other.platform;
}

const toTime = (ms: number): string => new Date(ms).toISOString();

function fromRow({ maintenance, active: _, since, until, ...row }: CordonRow): CordonRecord {
  return {
    ...row,
    since: Date.parse(since),
    until: until === null ? null : Date.parse(until),
    isMaintenance: maintenance,
    refusals: null,
  };
}
