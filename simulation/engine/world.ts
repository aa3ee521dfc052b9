import type { OrchestratorDeps } from '../../src/compose/orchestrator/orchestrator.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { orderDestroy } from '../../src/orchestrator/instances/destroy.ts';
import { markOf } from '../../src/orchestrator/model/marks.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Plant } from '../kernel/replica.ts';
import type { SharedDatabase } from '../kernel/shared-database.ts';
import type { Accounts } from '../orchestrator/accounts.ts';
import { SimulatedSsh } from '../orchestrator/platform/ssh.ts';
import type { Database } from '../orchestrator/replicas/database.ts';
import {
  type OrchestratorReplica,
  OrchestratorWorld,
  type PlatformAccess,
} from '../orchestrator/replicas/replica.ts';
import { Clients } from '../orchestrator/workload/clients.ts';
import type { EngineName } from '../runner/subject.ts';
import { Backups } from './backups.ts';
import { catalog, DATACENTER } from './catalog.ts';
import { Commands } from './commands.ts';
import type { Engine } from './engine.ts';
import { ExecEngine } from './exec/engine.ts';
import { IncusEngine, unreachable as incusUnreachable } from './incus/engine.ts';
import { EngineInspector } from './invariants/inspector.ts';
import { LibvirtEngine, unreachable } from './libvirt/engine.ts';
import { observedDriver } from './observed-driver.ts';
import { OpenStackEngine } from './openstack/engine.ts';
import { Outages } from './outages.ts';
import { People } from './people.ts';
import { drawScenario, type EngineScenario } from './scenario.ts';
import { Writers } from './writers.ts';

const ACCEPTED_FOR_MS = 3_600_000;

export type EnginePlant = Plant<OrchestratorDeps, EngineWorld>;

/** One run: servers with a real driver, their database, the engine, the people there and the clients, in virtual time. */
export class EngineWorld extends OrchestratorWorld {
  readonly chance: Chance;
  readonly scenario: EngineScenario;
  readonly catalog: Catalog = catalog;
  readonly inspector: EngineInspector;
  readonly commands: Commands;
  readonly engine: Engine;
  readonly people: People;
  readonly outages: Outages;
  readonly ssh: SimulatedSsh;
  readonly database: Database;
  readonly clients: Clients;
  readonly writers: Writers;
  readonly backups: Backups;
  /** The ids of instances whose removal the operator ordered. */
  readonly removedByOperator = new Set<string>();
  readonly key: string;
  readonly platforms: ReadonlyMap<string, PlatformAccess>;
  readonly replicas: readonly OrchestratorReplica[];

  readonly #plant: EnginePlant | undefined;

  constructor(
    seed: string,
    shared: SharedDatabase<Store>,
    accounts: Accounts,
    name: EngineName,
    plant?: EnginePlant,
  ) {
    super();
    this.#plant = plant;
    const { scheduler, journal } = this;
    this.chance = new Chance(seed);
    const { chance } = this;
    this.scenario = drawScenario(chance.fork('scenario'));
    this.inspector = new EngineInspector(this);
    const isCalm = (): boolean => this.isCalm;
    this.commands = new Commands({
      ...{ scheduler, journal, isCalm },
      unreachable: name === 'libvirt' ? unreachable : incusUnreachable,
      chance: chance.fork('commands'),
      rates: this.scenario.commandFaults,
      standStill: (process) => this.#standStill(process),
    });
    const parts = {
      ...{ scheduler, catalog, isCalm, commands: this.commands, observer: this.inspector },
      hosts: this.scenario.hosts,
      sharesFileSystem: /^(full|readOnly)$/.test(this.scenario.outage ?? ''),
      datacenter: DATACENTER,
      chance: chance.fork('guests'),
    };
    const Engines = {
      libvirt: LibvirtEngine,
      incus: IncusEngine,
      exec: ExecEngine,
      openstack: OpenStackEngine,
    };
    this.engine = new Engines[name](parts);
    const { engine } = this;
    this.people = new People(this, chance.fork('people'), this.scenario.people, this.inspector);
    this.ssh = new SimulatedSsh({
      ...{ scheduler, isCalm, chance: chance.fork('ssh') },
      guestAt: (host, port) => {
        const found = engine.guestAt(host, port);
        return found && { ...found.guest, ref: found.machine.ref, readyAt: found.readyAt };
      },
    });
    this.database = this.begin(shared);
    this.clients = new Clients(this, accounts);
    this.outages = new Outages(this, chance.fork('outages'));
    this.writers = new Writers(this, chance.fork('writers'));
    this.backups = new Backups(this, chance.fork('backups'));
    this.key = accounts.alpha.key;
    const access: PlatformAccess = {
      driver: (process, clock) => observedDriver(engine.driver(process, clock), process, this.inspector),
      died: (process) => this.commands.died(process),
    };
    this.platforms = new Map([['default', access]]);
    this.replicas = this.makeReplicas();
  }

  get driverName(): string {
    return this.engine.driverName;
  }

  plant(ports: OrchestratorDeps, process: ServerProcess): OrchestratorDeps {
    return this.#plant?.(ports, this, process) ?? ports;
  }

  /** Commands of drivers to hosts. */
  get calls(): number {
    return this.commands.sent;
  }

  get faultCounts(): ReadonlyMap<string, number> {
    return this.commands.counts;
  }

  /** The operator accepts that machines are lost. */
  async acceptLosses(): Promise<void> {
    this.database.writer = null;
    const until = Math.ceil(this.scheduler.now) + ACCEPTED_FOR_MS;
    await this.database.transact((tx) => tx.marks.put(markOf('default', 'losses_accepted_until'), until));
  }

  /** The operator follows the alarm about a removal that has no order, with `berth instances rm`. */
  async orderRemovals(): Promise<void> {
    this.database.writer = null;
    const now = Math.ceil(this.scheduler.now);
    for (const { kind, subject: id, text } of await this.database.store.read.alarms.list()) {
      if (kind !== 'step_failing' || !text.includes('berth instances rm')) continue;
      await this.database.transact(async (tx) => {
        const record = await tx.instances.byId(id);
        if (record === null || record.destroyOrder !== null) return;
        this.removedByOperator.add(id);
        await orderDestroy(tx, record, now, { reason: 'operator', by: 'an operator' });
      });
      this.database.workWritten();
    }
  }

  #standStill(process: ServerProcess): void {
    const replica = this.replicas.find((one) => one.process === process);
    replica?.pause(this.chance, 1_200 * this.scenario.leaseS);
  }
}
