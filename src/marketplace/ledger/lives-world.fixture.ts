import {
  member,
  runningDeployment,
  team,
  user,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import { nextTurn } from '../../ports/clock.ts';
import { ApiError } from '../contract/errors.ts';
import { assignDiscount, endDiscount } from '../discounts/discounts.ts';
import { priceFor } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { SubjectKind } from '../model/ledger-records.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { realTimeBalance } from './balance.ts';
import { endBilling, startBilling } from './bill.ts';
import { book } from './credit.ts';
import type { BooksOfStore } from './ledger.fixture.ts';
import type { Event } from './lives-events.fixture.ts';
import { verifyLedger } from './verify-ledger.ts';
import type { Enforcement } from './zero-balance.ts';

/** The effects of a world's job, and the contents of its ledger. */
interface Lived {
  mails: { at: number; to: string; subject: string; text: string }[];
  ended: string[];
  /** Balances and shown rates of each deployment and volume, at many moments. */
  shown: object[];
  findings: object[];
  slices: number;
}

interface Job {
  run(): Promise<void>;
  stop(): Promise<void>;
}

export type MakeJob = (deps: BooksOfStore['deps'] & { enforce: Enforcement }) => Job;

/** A marketplace with one billing job, to which events are applied. */
export class World {
  readonly #books: BooksOfStore;
  readonly #makeJob: MakeJob;
  readonly #ended: string[] = [];
  readonly #shown: object[] = [];
  #enforced: Promise<void>[] = [];
  #job: Job;

  constructor(books: BooksOfStore, makeJob: MakeJob) {
    this.#books = books;
    this.#makeJob = makeJob;
    this.#job = this.#begin();
  }

  get store() {
    return this.#books.store;
  }

  get now(): number {
    return this.#books.clock.now();
  }

  /** The process ends and another one starts. */
  async restart(): Promise<void> {
    await this.#job.stop();
    this.#job = this.#begin();
  }

  pass(ms: number): void {
    this.#books.clock.step(ms);
  }

  async round(): Promise<void> {
    await this.#job.run();
    await Promise.all(this.#enforced);
    this.#enforced = [];
    await nextTurn();
  }

  async observe(lags: ReadonlyMap<string, number>): Promise<void> {
    const active = await this.store.read.deployments.list({ statuses: ['running', 'stopped'] });
    const seen = active.flatMap(({ id, revision, observedAt }) => {
      const lagMs = lags.get(id);
      return lagMs === undefined ? [] : [{ id, revision, at: Math.max(observedAt ?? 0, this.now - lagMs) }];
    });
    await this.store.transact((tx) => tx.deployments.recordObservations(seen));
  }

  async look(teamIds: readonly string[]): Promise<void> {
    const { read } = this.store;
    const balances = await Promise.all(teamIds.map((id) => realTimeBalance(read, id, this.now)));
    const deployments = (await read.deployments.list({})).map((record) => ({
      id: record.id,
      status: record.status,
      rate: record.rateMicroUsd,
      stoppedRate: record.stoppedRateMicroUsd,
      discount: record.discountPercentage,
    }));
    const volumes = (await Promise.all(teamIds.map((id) => read.volumes.ofTeam(id)))).flat();
    const kept = volumes.map(({ id, status, rateMicroUsd }) => ({ id, status, rateMicroUsd }));
    this.#shown.push({ at: this.now, balances, deployments, kept });
  }

  async lived(): Promise<Lived> {
    const mails = await this.store.read.mail.list({ limit: 10_000 });
    const { findings, counts } = await verifyLedger(this.store, this.now);
    return {
      mails: mails
        .map(({ createdAt, to, subject, text }) => ({ at: createdAt, to, subject, text }))
        .toSorted((a, b) => a.at - b.at || (a.subject + a.to < b.subject + b.to ? -1 : 1)),
      ended: this.#ended.toSorted(),
      shown: this.#shown,
      findings: [...findings, ...this.#books.lines.filter(({ level }) => level === 'error').filter(isFault)],
      slices: counts.slices,
    };
  }

  async take(event: Event): Promise<void> {
    const { deps } = this.#books;
    if (event.do === 'assign') {
      const startsAt = this.now + event.inMs;
      const endsAt = event.lastsMs === null ? null : startsAt + event.lastsMs;
      await assignDiscount(deps, { ...event, startsAt, endsAt });
      return;
    }
    if (event.do === 'revoke') {
      const found = (await this.store.read.discounts.ofTeam(event.teamId))[event.which];
      if (found !== undefined) await endDiscount(deps, found.id);
      return;
    }
    if (event.do === 'credit') return void (await book(deps, event.kind, { ...event, reason: 'a life' }));
    await this.store.transact((tx) => this.#write(tx, event));
  }

  async #write(tx: Transaction, event: Exclude<Event, { do: 'assign' | 'revoke' | 'credit' }>) {
    const { now } = this;
    if (event.do === 'start') return this.#start(tx, event);
    if (event.do === 'keep') return this.#keep(tx, event);
    if (event.do === 'resize' || event.do === 'drop') {
      const record = await tx.volumes.byId(event.id);
      if (record === null || record.status === 'deleting') return;
      if (event.do === 'drop') return this.#drop(tx, record);
      const price = await priceFor(tx, record.teamId, event.rate, now);
      await tx.volumes.update({ ...record, ...toRates(price) });
      return this.#bill(tx, 'volume', record, 'stored', price, now);
    }
    const record = await tx.deployments.byId(event.id);
    if (record === null || (record.status !== 'running' && record.status !== 'stopped')) return;
    const at = Math.max(now - event.lagMs, record.observedAt ?? 0);
    if (event.do === 'end') return this.#end(tx, record, at);
    if (event.do === 'reprice') {
      if (record.status === 'running') await this.#run(tx, record, event.rate, at);
      return;
    }
    if (record.status === 'stopped') await this.#run(tx, record, event.rate, at);
    else await this.#stop(tx, record, at);
  }

  async #start(tx: Transaction, { teamId, id, rate, lagMs }: Event & { do: 'start' }): Promise<void> {
    const at = this.now - lagMs;
    const record = runningDeployment({ id, teamId, providerName: id, startedAt: at, createdAt: at });
    await tx.deployments.insert({ ...record, observedAt: at });
    await this.#run(tx, { ...record, observedAt: at }, rate, at);
  }

  async #run(tx: Transaction, record: DeploymentRecord, rate: number, at: number): Promise<void> {
    const price = await priceFor(tx, record.teamId, rate, at);
    await tx.deployments.update({
      ...record,
      ...toRates(price),
      status: 'running',
      pausedAt: null,
      observedAt: at,
    });
    await this.#bill(tx, 'deployment', record, 'running', price, at);
  }

  async #stop(tx: Transaction, record: DeploymentRecord, at: number): Promise<void> {
    const price = await priceFor(tx, record.teamId, Math.ceil(record.originalRateMicroUsd / 3), at);
    const originalStoppedRateMicroUsd = price.originalRateMicroUsd;
    const stopped = { originalStoppedRateMicroUsd, stoppedRateMicroUsd: price.rateMicroUsd };
    await tx.deployments.update({ ...record, ...stopped, status: 'stopped', pausedAt: at, observedAt: at });
    await this.#bill(tx, 'deployment', record, 'stopped', price, at);
  }

  async #end(tx: Transaction, record: DeploymentRecord, at: number): Promise<void> {
    await tx.deployments.update({ ...record, status: 'terminated', stoppedAt: at, observedAt: at });
    for (const { volumeId } of await tx.volumes.attachmentsOf({ deploymentId: record.id }))
      await tx.volumes.removeAttachment(volumeId, record.id);
    await endBilling(this.#books.deps, tx, 'deployment', record.id, at);
  }

  async #keep(tx: Transaction, { teamId, id, rate, on }: Event & { do: 'keep' }): Promise<void> {
    const at = this.now;
    const price = await priceFor(tx, teamId, rate, at);
    const named = { id, volumeId: `v-${id}`, name: id, providerName: id };
    const record = volume({ ...named, teamId, startedAt: at, createdAt: at, ...toRates(price) });
    await tx.volumes.insert(record);
    const holder = on === undefined ? null : await tx.deployments.byId(on);
    if (holder !== null && holder.stoppedAt === null)
      await tx.volumes.putAttachment({ volumeId: id, deploymentId: holder.id, state: 'attached' });
    await this.#bill(tx, 'volume', record, 'stored', price, at);
  }

  async #drop(tx: Transaction, record: VolumeRecord): Promise<void> {
    const deletedAt = await endBilling(this.#books.deps, tx, 'volume', record.id, this.now);
    await tx.volumes.update({ ...record, status: 'deleting', deletedAt });
  }

  async #bill(
    tx: Transaction,
    subjectKind: SubjectKind,
    { id: subjectId, teamId }: { id: string; teamId: string },
    state: 'running' | 'stopped' | 'stored',
    price: Awaited<ReturnType<typeof priceFor>>,
    at: number,
  ): Promise<void> {
    await startBilling(this.#books.deps, tx, { subjectKind, subjectId, teamId, state, price, at });
  }

  #begin(): Job {
    const end = (what: string, id: string, work: () => Promise<void>): Promise<void> => {
      this.#ended.push(`${this.now} ${what} ${id}`);
      const done = work();
      this.#enforced.push(done.catch(() => undefined));
      return done;
    };
    return this.#makeJob({
      ...this.#books.deps,
      enforce: {
        stop: (id) => end('stop', id, () => this.#enforceStop(id)),
        terminate: (id) => end('terminate', id, () => this.take({ do: 'end', id, lagMs: 0 })),
        deleteVolume: ({ id }) => end('delete', id, () => this.take({ do: 'drop', id })),
      },
    });
  }

  /** The id of a machine determines the outcome of its stop. */
  async #enforceStop(id: string): Promise<void> {
    const fate = Number(id.split('-').at(-1)) % 4;
    if (fate === 0) throw new ApiError('ACTION_UNSUPPORTED', 'It cannot be stopped.');
    if (fate === 1) throw new ApiError('PROVIDER_REFUSED', 'Not now.');
    await this.store.transact(async (tx) => {
      const record = await tx.deployments.byId(id);
      if (record?.status === 'running')
        await this.#stop(tx, record, Math.max(this.now, record.observedAt ?? 0));
    });
  }
}

/** A failed stop is an expected outcome. */
const isFault = ({ message }: { message: string }): boolean =>
  !message.includes('could not end a deployment');

function toRates({
  originalRateMicroUsd,
  rateMicroUsd,
  discountPercentage,
}: Awaited<ReturnType<typeof priceFor>>) {
  return { originalRateMicroUsd, rateMicroUsd, discountPercentage };
}

export async function openWorld(
  teamIds: readonly string[],
  books: BooksOfStore,
  makeJob: MakeJob,
): Promise<World> {
  await books.store.transact(async (tx) => {
    for (const id of teamIds) {
      await tx.users.insert(user({ id: `owner-${id}` }));
      await tx.teams.insert(team({ id, ownerId: `owner-${id}` }));
      await tx.teams.putMember(member({ teamId: id, userId: `owner-${id}` }));
    }
  });
  return new World(books, makeJob);
}
