import type { OrchestratorDeps } from '../../src/compose/orchestrator/orchestrator.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { markOf } from '../../src/orchestrator/model/marks.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { callTimeoutMs } from '../../src/work/lease-time.ts';
import { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Plant } from '../kernel/replica.ts';
import type { SharedDatabase } from '../kernel/shared-database.ts';
import type { EngineName, Subject } from '../runner/subject.ts';
import type { Accounts } from './accounts.ts';
import { catalog, catalogOfTwo, SOUND_PLATFORM } from './catalog.ts';
import { Inspector } from './invariants/inspector.ts';
import { OperatorCordons } from './operator-cordons.ts';
import { CallFaults } from './platform/call-faults.ts';
import { simulatedDriver } from './platform/driver.ts';
import { Addresses, type Machine, SSH_PORT } from './platform/platform.ts';
import {
  type AllMachines,
  type AllVolumes,
  allMachines,
  allVolumes,
  makeSite,
  makeSoundSite,
  type Site,
} from './platform/sites.ts';
import { SimulatedSsh } from './platform/ssh.ts';
import type { Traits } from './platform/traits.ts';
import type { Database } from './replicas/database.ts';
import { type OrchestratorReplica, OrchestratorWorld, type PlatformAccess } from './replicas/replica.ts';
import { drawScenario, type Scenario, withHosts, withTwoPlatforms } from './scenario.ts';
import { Clients } from './workload/clients.ts';

const SETTLED = new Set(['ONLINE', 'STOPPED']);
const MANY = 4;

const ACCEPTED_FOR_MS = 180_000;
/** Longer than any clock was ahead: a server's time returns to a corrected clock by a tenth of the time that passes. */
const ACCEPTED_AT_REST_MS = 2 * 3_600_000;

export type OrchestratorSubject = Exclude<Subject, 'marketplace' | EngineName>;
export type OrchestratorPlant = Plant<OrchestratorDeps, World>;

/** One run: servers, their database, their platform and their clients, in virtual time, made from one seed. */
export class World extends OrchestratorWorld {
  readonly chance: Chance;
  readonly scenario: Scenario;
  readonly traits: Traits;
  readonly inspector: Inspector;
  readonly callFaults: CallFaults;
  /** What the platform draws about machines. */
  readonly machineChance: Chance;
  /** What befalls the hosts. */
  readonly hostChance: Chance;
  readonly addresses = new Addresses();
  /** The platforms by name; `default` is the one that faults are injected into. */
  readonly sites: ReadonlyMap<string, Site>;
  readonly troubled: Site;
  readonly platforms: ReadonlyMap<string, PlatformAccess>;
  readonly catalog: Catalog;
  readonly key: string;
  /** Of all platforms. */
  readonly machines: AllMachines;
  readonly volumes: AllVolumes;
  readonly ssh: SimulatedSsh;
  readonly database: Database;
  readonly replicas: readonly OrchestratorReplica[];
  readonly clients: Clients;
  readonly cordons: OperatorCordons;
  readonly callTimeoutMs: number;
  #lossesAcceptedUntil = 0;

  readonly #plant: OrchestratorPlant | undefined;

  constructor(
    seed: string,
    shared: SharedDatabase<Store>,
    accounts: Accounts,
    subject: OrchestratorSubject,
    plant?: OrchestratorPlant,
  ) {
    super();
    this.#plant = plant;
    const { scheduler, journal } = this;
    this.chance = new Chance(seed);
    const drawn = drawScenario(this.chance.fork('scenario'));
    const hasTwoPlatforms = subject === 'platforms';
    this.scenario = hasTwoPlatforms ? withTwoPlatforms(drawn, this.chance.fork('platforms')) : drawn;
    if (subject === 'hosts') this.scenario = withHosts(drawn, this.chance.fork('hosts'));
    this.catalog = hasTwoPlatforms ? catalogOfTwo : catalog;
    this.traits = this.scenario.traits;
    this.inspector = new Inspector(this);
    const { chance, traits, inspector } = this;
    this.callFaults = new CallFaults(
      scheduler,
      chance.fork('faults'),
      this.scenario.callFaultRate,
      () => this.wouldNoticeEmptyAccount,
    );
    const faults = this.callFaults;
    this.machineChance = chance.fork('machines');
    this.hostChance = chance.fork('host faults');
    const parts = { scheduler, journal, observer: inspector, addresses: this.addresses, traits };
    const offersOf = (site: string): string[] =>
      [...this.catalog.offers.values()].flatMap(({ id, platform }) => (platform === site ? [id] : []));
    this.troubled = makeSite({
      ...parts,
      offerIds: offersOf('default'),
      callFaults: faults,
      chances: {
        machines: this.machineChance,
        volumes: chance.fork('volumes'),
        network: chance.fork('network'),
      },
    });
    this.sites = new Map([
      ['default', this.troubled],
      ...(hasTwoPlatforms
        ? [[SOUND_PLATFORM, makeSoundSite(chance, { ...parts, offerIds: offersOf(SOUND_PLATFORM) })] as const]
        : []),
    ]);
    this.platforms = new Map([...this.sites].map(([name, site]) => [name, accessTo(site)]));
    const machines = allMachines(this.sites.values());
    this.machines = machines;
    this.volumes = allVolumes(this.sites.values());
    this.ssh = new SimulatedSsh({
      ...{ scheduler, isCalm: () => faults.isOver, chance: chance.fork('ssh') },
      guestAt: (host, port) => {
        const isThere = ({ ip, power }: Machine): boolean => ip === host && power === 'running';
        const machine = port === SSH_PORT ? machines.all().find(isThere) : undefined;
        if (machine === undefined) return undefined;
        const { hostKey, sshReadyAt, spec } = machine;
        return { ref: spec.ref, hostKey, keys: spec.sshKeys, readyAt: sshReadyAt };
      },
    });
    this.database = this.begin(shared);
    this.clients = new Clients(this, accounts);
    this.cordons = new OperatorCordons(this, chance.fork('operator-cordons'));
    this.key = accounts.alpha.key;
    this.callTimeoutMs = callTimeoutMs(this.scenario.leaseS * 1_000);
    this.replicas = this.makeReplicas();
  }

  get driverName(): string {
    return this.traits.manifest.name;
  }

  /** Calls of the servers to the platform. */
  get calls(): number {
    return this.callFaults.calls;
  }

  get faultCounts(): ReadonlyMap<string, number> {
    return this.callFaults.counts;
  }

  /**
   * Whether enough settled instances have a machine for the servers to recognise an empty account as a fault. With
   * one or two, nobody can tell it from a loss.
   */
  get wouldNoticeEmptyAccount(): boolean {
    if (this.isLossAccepted) return false;
    const settled = this.inspector.history.instances().filter(({ status }) => SETTLED.has(status));
    const { machines } = this.troubled;
    return settled.filter(({ ownerRef }) => machines.of(ownerRef).length > 0).length >= MANY;
  }

  /** Whether the operator accepts, by the clock of any server, that missing machines are lost. */
  get isLossAccepted(): boolean {
    const times = this.replicas.map(({ now }) => now ?? this.scheduler.now);
    return Math.min(this.scheduler.now, ...times) < this.#lossesAcceptedUntil;
  }

  /** The operator accepts losses for some minutes, and for some hours once no fault happens any more. */
  async acceptLosses(): Promise<void> {
    this.journal.note('operator', 'accepts the losses');
    const forMs = this.isCalm ? ACCEPTED_AT_REST_MS : ACCEPTED_FOR_MS;
    const until = Math.ceil(this.scheduler.now) + forMs;
    // A server whose clock is behind accepts them for longer.
    this.#lossesAcceptedUntil = until + ACCEPTED_FOR_MS;
    this.database.writer = null;
    await this.database.transact(async (tx) => {
      for (const platform of this.sites.keys())
        await tx.marks.put(markOf(platform, 'losses_accepted_until'), until);
    });
  }

  plant(ports: OrchestratorDeps, process: ServerProcess): OrchestratorDeps {
    return this.#plant?.(ports, this, process) ?? ports;
  }
}

const accessTo = (site: Site): PlatformAccess => ({
  driver: (process) => simulatedDriver(site, process),
  died: (process) => site.network.died(process),
});
