import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import type { Raised } from '../../orchestrator/alarms/alarms.ts';
import type { Sale } from '../../orchestrator/capacity/deployable.ts';
import type { ObservedMachine, OwnerRef, PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { Reader } from '../../orchestrator/model/store.ts';
import { saleByRows } from '../../orchestrator/operate/views/capacity.ts';
import type { PlatformFacts } from '../../orchestrator/operate/views/platforms.ts';
import { observe } from '../../orchestrator/platform/call-platform.ts';
import { PlatformInventory } from '../../orchestrator/platform/inventory.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import { type ConfiguredDriver, configuredDrivers } from './driver-settings.ts';

/** Time limit of one question. The driver enforces it and names the part that did not answer. */
export const QUESTION_MS = 5_000;
/** Longer than {@link QUESTION_MS}, so that the driver can still report the cause. */
export const ANSWER_MS = QUESTION_MS + 1_000;

/** A platform with the current answers of its driver. */
export interface AskedPlatform extends PlatformFacts {
  /** Why its hosts are unknown. Undefined if they are known. */
  problem: string | undefined;
  inventory?: PlatformInventory;
  /** Whether its free units are known: it has counted them, or its driver sets no limit. */
  isCounted?: boolean;
  /** Where else to find its hosts if the driver could not be opened here. */
  advice?: string;
}

/** A running server may have locked the driver. Only the driver knows the cause. */
const SEE_CONSOLE = 'A running server may have locked the driver: see the page Platforms of its console.';

/** Opens each driver in this process and asks for its hosts, concurrently. No server needs to run. */
export async function askPlatforms(
  config: Config,
  read: Reader,
  ports: { env: Environment; clock: Clock; log: Log },
): Promise<Map<string, AskedPlatform>> {
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  const waiting = {
    clock: ports.clock,
    options: { callTimeoutMs: DEFAULT_CALL_MS },
  };
  const askOne = async (one: ConfiguredDriver): Promise<AskedPlatform> => {
    const driver = one.definition.name;
    let open: PlatformDriver;
    try {
      open = await openInTime(one, ports.clock);
    } catch (error) {
      return { driver, problem: messageOf(error), advice: SEE_CONSOLE };
    }
    if (open.inventory === undefined) {
      await open.close();
      return { driver, problem: 'its driver does not count units', isCounted: true };
    }
    let problem: string | undefined;
    const alarms = {
      raise: ({ detail }: Raised) => {
        problem = detail;
      },
      end: () => undefined,
    };
    const { platform } = one;
    const deps = { platform, driver: open, store: { read }, catalog, ...ports, ...waiting, alarms };
    const inventory = new PlatformInventory(deps);
    try {
      await inventory.refresh(await listMachines(open, waiting));
    } finally {
      await open.close();
    }
    if (!Number.isFinite(inventory.ageMs)) return { driver, problem: problem ?? 'its count failed' };
    if (inventory.hosts.length === 0) problem = 'its driver does not list hosts';
    return { driver, problem, inventory, isCounted: true };
  };
  const drivers = configuredDrivers(config, { ...ports, catalog });
  const answers = await Promise.all(drivers.map(askOne));
  return new Map(drivers.map(({ platform }, index) => [platform, answers[index] as AskedPlatform]));
}

/** @throws {Fatal | Late} */
async function openInTime(
  { definition, options, setting }: ConfiguredDriver,
  clock: Clock,
): Promise<PlatformDriver> {
  const over = new AbortController();
  const asking = { withinMs: QUESTION_MS, signal: over.signal };
  const opening = definition.open(options, { ...setting, asking });
  try {
    return await inTime(clock, ANSWER_MS, opening);
  } catch (error) {
    over.abort();
    opening.then((late) => late.close()).catch(() => {});
    throw error;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The machines of a listing. None while they are unknown: then a claim is not known to be in the count. */
async function listMachines(
  driver: PlatformDriver,
  waiting: Parameters<typeof observe>[0],
): Promise<Map<OwnerRef, ObservedMachine>> {
  const listing = await observe(waiting, () => driver.list(), 'list');
  return new Map(listing.answer === 'listed' ? listing.items.map((one) => [one.ref, one]) : []);
}

/** The capacity according to the rows and to the answers of the platforms. */
export async function saleByAnswers(
  read: Pick<Reader, 'marks'>,
  asked: ReadonlyMap<string, AskedPlatform>,
): Promise<Sale> {
  return {
    ...(await saleByRows(read, asked.keys())),
    platformUnits: ({ id, platform }, region) => asked.get(platform)?.inventory?.capacity(id, region),
    obstacles: ({ id, platform }, region) => asked.get(platform)?.inventory?.obstacles(id, region) ?? [],
  };
}

export class Late extends Error {
  override readonly name = 'Late';
}

/** @throws {Late} */
export async function inTime<T>(clock: Clock, withinMs: number, answer: Promise<T>): Promise<T> {
  answer.catch(() => {});
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Late(`no answer within ${Math.max(0, Math.round(withinMs / 1000))} s`);
  const timer = clock.setTimer(withinMs, () => reject(late));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}
