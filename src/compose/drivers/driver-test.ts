import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import ssh2 from 'ssh2';
import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import type { Channel } from '../../drivers/exec/channel.ts';
import { type ProtocolContext, protocolChecks } from '../../drivers/exec/checks.ts';
import { exec, openExec } from '../../drivers/exec/driver.ts';
import { AnswerLost } from '../../drivers/exec/errors.ts';
import type { ExecConfig } from '../../drivers/exec/options.ts';
import { aroundCalls } from '../../drivers/kit/around-calls.ts';
import type { Bench, DriverContext } from '../../drivers/kit/checks/bench.ts';
import { type CheckResult, type DriverCheck, runCheck } from '../../drivers/kit/checks/check.ts';
import { driverChecks } from '../../drivers/kit/checks/index.ts';
import type { DriverOptions } from '../../drivers/kit/driver-definition.ts';
import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import type {
  Listing,
  MachineSpec,
  ObservedMachine,
  PlatformDriver,
} from '../../orchestrator/model/platform-driver.ts';
import { broken, type Diagnosis, type Exchange, ok, skipped, warning } from '../../ports/diagnosis.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import { systemClock } from '../../runtime/system.ts';
import { runInGuest } from '../../ssh/guest-login.ts';
import { createSshProbe } from '../../ssh/probe.ts';
import { type ConfiguredDriver, configuredDriver } from './driver-settings.ts';

/** A driver of exec: a program or an HTTP service, with the offers of a catalog. */
export interface TestedProgram {
  /** The program and its arguments, unless `url` is given. */
  command: readonly string[] | undefined;
  url: string | undefined;
  /** Names of variables that are passed to the program. */
  environment: readonly string[];
  catalogFile: string;
  timeoutMs: number;
}

/** A platform of berth.yaml: the named one, or the only one. */
export interface TestedPlatform {
  config: Config;
  platform: string | undefined;
}

export interface DriverTestOptions {
  tested: TestedProgram | TestedPlatform;
  env: Environment;
  /** The offer of the catalog to create; by default the first. */
  offerId: string | undefined;
  units: number | undefined;
  patienceMs: number;
  only: readonly string[];
}

export interface DriverTest {
  /**
   * Reports what is tested, then runs the checks one after another, until `isStopped`. Each check removes what it
   * created. The last finding names what could not be removed.
   */
  run(isStopped: () => boolean): AsyncGenerator<Diagnosis>;
  close(): Promise<void>;
}

const SHOWN_EXCHANGES = 4;

/** Opens a driver to check Berth's requirements on it. @throws {Fatal} with a sentence for its author */
export async function openDriverTest(options: DriverTestOptions): Promise<DriverTest> {
  const prefix = `berth-test-${randomBytes(4).toString('hex')}`;
  const exchanges: Exchange[] = [];
  const logged: string[] = [];
  const record = (fields: object, message: string): void => {
    logged.push(message);
    if ('line' in fields) exchanges.push({ asked: '(its standard error)', answered: String(fields.line) });
  };
  const log = { debug: record, info: record, warn: record, error: record };
  const driver = testedDriver(options, log);
  const { catalog } = driver.setting;
  const offer = offerOf(catalog, options.offerId);
  const subject = new Subject(driver, exchanges);
  await subject.open();
  const context = contextOf(subject, options, { catalog, offer, prefix });
  const { ports } = subject;
  const isExec = ports !== undefined;
  const checks = [...driverChecks, ...(isExec ? protocolChecks({ ...ports, logged: () => logged }) : [])];
  return {
    async *run(isStopped) {
      const tested = selected(checks, options.only);
      yield* describe(subject.driver, offer);
      let isCreating = true;
      for (const check of tested) {
        if (isStopped()) {
          yield broken(check.id, 'the test was stopped before this check', 'Run the test again.');
          break;
        }
        if (!isCreating && !WITHOUT_MACHINES.has(check.id)) {
          yield skipped(check.id, 'correct `create` first');
          continue;
        }
        exchanges.length = 0;
        let shown: Exchange[] | undefined;
        const run = (bench: Bench) =>
          check.run(bench).catch((error: unknown) => {
            shown = exchanges.slice(0 - SHOWN_EXCHANGES);
            throw error;
          });
        const result = await runCheck({ ...check, run }, { ...context, driver: subject.facade });
        if (check.id === 'create' && result.outcome === 'failed') isCreating = false;
        yield toFinding(check, result, { isExec, shown: shown ?? exchanges.slice(0 - SHOWN_EXCHANGES) });
      }
      yield* findLeftovers(subject.driver, prefix);
    },
    close: () => subject.driver.close(),
  };
}

/** Reports the driver, its capabilities, and machines that reduce the free capacity that the checks count. */
async function* describe(driver: PlatformDriver, { id }: Offer): AsyncGenerator<Diagnosis> {
  const { has, hasNot } = abilitiesOf(driver);
  const without = hasNot.length === 0 ? '' : `; without ${hasNot.join(', ')}`;
  yield ok(
    `driver ${driver.manifest.name}`,
    `machines of the offer ${id}; capabilities: ${has.join(', ')}${without}`,
  );
  const found = refsIn(await driver.list());
  if (found.length > 0)
    yield warning(
      'machines',
      `already there: ${found.join(', ')}. They take units, and --units counts an empty platform`,
      'Remove everything named berth-test-….',
    );
}

async function* findLeftovers(driver: PlatformDriver, prefix: string): AsyncGenerator<Diagnosis> {
  const listings = [await driver.list(), ...(driver.volumes ? [await driver.volumes.list()] : [])];
  const found = new Set(listings.flatMap(refsIn).filter((ref) => ref.startsWith(prefix)));
  if (found.size > 0)
    yield broken('leftovers', `still there: ${[...found].join(', ')}`, 'Remove them by hand.');
}

const refsIn = (listing: Listing<{ ref: string }>): string[] =>
  listing.answer === 'listed' ? listing.items.map(({ ref }) => ref) : [];

const DESTROY_AGAIN = driverChecks.find(({ id }) => id === 'destroy-again')?.remedy ?? '';

/** Checks that run even if no machine can be made. */
const WITHOUT_MACHINES = new Set(['manifest', 'never-made', 'power-of-none', 'output', 'ends', 'too-late']);

/** The driver's capabilities, in the protocol's words. */
function abilitiesOf({ manifest, inventory, consoleTail, place, disown, volumes, writer }: PlatformDriver): {
  has: readonly string[];
  hasNot: readonly string[];
} {
  const { stop, resume, restart, attachVolume, resizeVolume, keepsNotes, cloudInitBytes } = manifest;
  const fences = 'fences' in manifest && manifest.fences === true;
  const all = {
    stop,
    resume,
    restart,
    attach_volume: attachVolume !== 'none',
    resize_volume: resizeVolume !== 'none',
    keeps_notes: keepsNotes,
    cloud_init_bytes: cloudInitBytes > 0,
    inventory: inventory !== undefined,
    console: consoleTail !== undefined,
    place: place !== undefined,
    place_volume: volumes?.place !== undefined,
    copy_volume: volumes?.copy !== undefined,
    disown: disown !== undefined,
    fences,
    writer_mark: writer !== undefined,
  };
  const names = (wanted: boolean) =>
    Object.entries(all).flatMap(([name, is]) => (is === wanted ? [name] : []));
  return { has: names(true), hasNot: names(false) };
}

/** For a driver that comes with Berth, whose user can change only the platform. */
const OF_BERTH =
  'Run `berth doctor` with the same configuration. If it finds nothing, report this output as a fault of Berth.';

function toFinding(
  check: DriverCheck,
  result: CheckResult,
  { isExec, shown }: { isExec: boolean; shown: readonly Exchange[] },
): Diagnosis {
  const { id, title, why } = check;
  if (result.outcome === 'passed') return ok(id, title);
  if (result.outcome === 'untried') return skipped(id, result.reason);
  const { cause, during, problem } = result;
  const isLost = cause instanceof AnswerLost;
  const found = isLost ? problem.replace(/a call threw: [^:]*: /, '') : problem;
  const remedy = isLost ? cause.remedy : during === 'removal' ? DESTROY_AGAIN : check.remedy;
  return {
    ...broken(id, isExec ? inWordsOfTheProtocol(found) : found, isExec ? remedy : OF_BERTH),
    requirement: title,
    consequence: why,
    exchanges: shown,
  };
}

/** Replaces the port's field names in a problem by the protocol's, which the program's author knows. */
function inWordsOfTheProtocol(problem: string): string {
  return problem.replace(
    /\b(create|created|public|private|ssh|host|port|side|poll|size|attached|attach|resize|keeps|cloud|retry)(?:[A-Z][a-z]+)+\b/g,
    (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
}

function selected(checks: readonly DriverCheck[], only: readonly string[]): readonly DriverCheck[] {
  const unknown = only.find((id) => !checks.some((check) => check.id === id));
  if (unknown !== undefined)
    throw new Fatal(`--only ${unknown}: there are ${checks.map(({ id }) => id).join(', ')}.`);
  return only.length === 0 ? checks : checks.filter(({ id }) => only.includes(id));
}

function offerOf({ offers }: Catalog, id: string | undefined): Offer {
  const [first] = offers.values();
  const offer = id === undefined ? first : offers.get(id);
  if (offer === undefined)
    throw new Fatal(`--offer ${id}: the catalog has ${[...offers.keys()].join(', ')}.`);
  return offer;
}

/** The driver under test, not yet opened. @throws {Fatal} */
function testedDriver({ tested, env }: DriverTestOptions, log: Log): ConfiguredDriver {
  const started = { env, clock: systemClock, log };
  if ('config' in tested) {
    const { config, platform } = tested;
    const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
    return configuredDriver(config, platform, { ...started, catalog });
  }
  const { command, url, environment, catalogFile, timeoutMs } = tested;
  const parsed = exec.configSchema.safeParse({
    driver: 'exec',
    ...(url === undefined ? { command } : { url }),
    environment,
    timeout_s: timeoutMs / 1000,
  });
  if (!parsed.success) throw new Fatal(`${parsed.error.issues.map(({ message }) => message).join('; ')}.`);
  const platform = 'default';
  const setting = { ...started, platform, catalog: loadCatalog(catalogFile), databaseFile: undefined };
  return { platform, options: parsed.data, definition: exec, setting };
}

/** The driver under test. Some checks stop and restart it. */
class Subject {
  readonly #tested: ConfiguredDriver;
  readonly #exchanges: Exchange[];
  #driver: PlatformDriver | undefined;
  #channel: Channel | undefined;

  constructor(tested: ConfiguredDriver, exchanges: Exchange[]) {
    this.#tested = tested;
    this.#exchanges = exchanges;
  }

  get driver(): PlatformDriver {
    if (this.#driver === undefined) throw new Error('it was not opened');
    return this.#driver;
  }

  /** Whether the driver ends with this process: a server over HTTP goes on. */
  get isOurs(): boolean {
    const { options } = this.#tested;
    return !isExecConfig(options) || options.url === undefined;
  }

  /** Always forwards to the current process's driver. */
  get facade(): PlatformDriver {
    return new Proxy(this.driver, { get: (_target, name) => Reflect.get(this.driver, name) as unknown });
  }

  /** What the checks of the protocol need. Undefined for a driver that does not speak it. */
  get ports(): Pick<ProtocolContext, 'channel' | 'now'> | undefined {
    const channel = this.#channel;
    if (channel === undefined) return undefined;
    return { channel: () => this.#channel ?? channel, now: () => systemClock.now() };
  }

  async open(): Promise<void> {
    const { definition, options, setting } = this.#tested;
    definition.check(options, setting);
    const record = (channel: Channel): Channel => {
      this.#channel = this.#recorded(channel);
      return this.#channel;
    };
    this.#driver = isExecConfig(options)
      ? await openExec(options, setting, record)
      : repeatsLost(await definition.open(options, setting));
  }

  /** Ends the process as Berth's shutdown does, and starts a new one. */
  async reopen(): Promise<PlatformDriver> {
    await this.driver.close();
    await this.open();
    return withOverrides(this.facade, { close: async () => undefined });
  }

  #recorded(channel: Channel): Channel {
    return {
      get isSerial() {
        return channel.isSerial;
      },
      secrets: channel.secrets,
      open: () => channel.open(),
      close: () => channel.close(),
      ask: async (method, args, limits) => {
        const exchange: Exchange = { asked: toText({ method, ...args }), answered: 'nothing yet' };
        this.#exchanges.push(exchange);
        try {
          const result = await channel.ask(method, args, limits);
          exchange.answered = channel.secrets.clean(toText(result));
          return result;
        } catch (error) {
          exchange.answered = `no result: ${error instanceof Error ? error.message : error}`;
          throw error;
        }
      },
    };
  }
}

/** How often a call is tried whose answer is lost. */
const MOST_TRIES = 3;

/** Repeats a call whose answer was lost, as the core does: a platform that is busy loses some. */
function repeatsLost(driver: PlatformDriver): PlatformDriver {
  return aroundCalls(driver, async ({ args }, run) => {
    for (let left = MOST_TRIES - 1; ; left--)
      try {
        return await run(args);
      } catch (error) {
        if (left === 0) throw error;
      }
  });
}

const isExecConfig = (options: DriverOptions): options is ExecConfig => options.driver === exec.name;

function toText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch {
    return '(JSON that is nested too deeply to be shown)';
  }
}

interface Tried {
  catalog: Catalog;
  offer: Offer;
  prefix: string;
}

function contextOf(
  subject: Subject,
  { units, patienceMs }: DriverTestOptions,
  { catalog, offer, prefix }: Tried,
): DriverContext {
  const pairs = [newPair(), newPair()] as const;
  const [placement] = offer.placements;
  const datacenter = catalog.regions.get(placement?.region ?? '')?.datacenter ?? placement?.region ?? '';
  const regions = [...catalog.regions.values()].sort(
    (a, b) => Number(b.datacenter === datacenter) - Number(a.datacenter === datacenter),
  );
  const [volumeType] = regions.flatMap(({ volumeTypes }) => volumeTypes);
  const probe = createSshProbe();
  return {
    driver: subject.driver,
    prefix,
    units,
    patienceMs,
    machineSpec: (ref): MachineSpec => ({
      ref,
      offerId: offer.id,
      datacenter,
      hostname: ref,
      image: offer.osOptions[0] ?? '',
      vcpus: offer.vcpus,
      memoryGb: offer.memoryGb,
      rootDiskGb: offer.storageGb,
      gpuCount: offer.gpuCount ?? 0,
      gpuType: offer.gpuType,
      sshKeys: pairs.map(({ public: line }) => line.trim()),
      cloudInit: undefined,
      note: 'a machine that `berth driver test` made',
    }),
    volumeSpec: (ref) => ({
      ref,
      datacenter,
      sizeGb: volumeType?.minSizeGb ?? 10,
      type: volumeType?.name,
      note: 'a volume that `berth driver test` made',
    }),
    wait: (ms) => sleep(ms),
    now: () => systemClock.now(),
    guest: {
      findRefusedKey: async (machine, sshKeys) => {
        const result = await probe.probe(targetOf(machine), sshKeys, machine.endpoint?.hostKeyFingerprint);
        return result.ok ? undefined : `${result.step}: ${result.detail}`;
      },
      run: (machine, line) => runInGuest(targetOf(machine), pairs[1].private, line),
    },
    ...(subject.isOurs && { reopen: () => subject.reopen() }),
  };
}

function newPair() {
  return ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 });
}

function targetOf({ ref, endpoint }: ObservedMachine) {
  if (endpoint === undefined) throw new Error(`${ref} has no endpoint`);
  return { host: endpoint.publicIp, port: endpoint.sshPort, username: endpoint.sshUsername };
}
