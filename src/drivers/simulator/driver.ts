import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { counted } from '../../contract/counted.ts';
import { readSecret } from '../../keys/api-key.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import { broken, type Diagnosis, ok } from '../../ports/diagnosis.ts';
import type { DriverDefinition, DriverSetting } from '../kit/driver-definition.ts';
import {
  type SimulatedCapacity,
  type SimulatorBehavior,
  type SimulatorConfig,
  simulatorConfigSchema,
} from './options.ts';
import { assertStateFile, assertStateFree, unusableState } from './platform/state-file.ts';

/**
 * A platform built into Berth: inside the orchestrator's process, or as a `berth simulator` at `address`, which
 * several orchestrators share. Its code is loaded when it is opened.
 */
export const simulator: DriverDefinition<SimulatorConfig> = {
  name: 'simulator',
  about: {
    provedOn: 'this version of Berth: it has no other platform behind it',
    provedBy: ['src/drivers/simulator/driver.test.ts', 'src/drivers/simulator/platform/platform.test.ts'],
    traps: [
      'Its machines are SSH servers with a small disk and some twenty-five commands: it is for trials and tests.',
      'A machine starts again only on its own host, even if only others have room.',
    ],
    guide: 'simulator.md',
  },
  placesOnHosts: true,
  async manifests() {
    const { manifestOf } = await import('./platform/rules.ts');
    return [{ manifest: manifestOf({ attachVolume: 'hot' }, 0) }];
  },
  configSchema: simulatorConfigSchema,
  check({ address }, setting) {
    readToken(setting.env);
    if (address === undefined) checkState(stateFileOf(setting));
  },
  diagnose: (options, setting) =>
    options.address === undefined
      ? diagnoseHere(stateFileOf(setting))
      : diagnoseThere(options.address, setting),
  async open({ address }, setting) {
    const { catalog, env, clock } = setting;
    if (address === undefined) return openSimulator(catalog, stateFileOf(setting), clock);
    const { connectSimulator } = await import('./remote/driver.ts');
    return connectSimulator({ address, token: readToken(env) }, clock);
  },
};

async function* diagnoseHere(stateFile: string): AsyncGenerator<Diagnosis> {
  const isThere = existsSync(stateFile);
  yield ok(
    `state ${stateFile}`,
    isThere ? 'it exists, and no other process uses it' : 'the first start creates it',
  );
}

async function* diagnoseThere(address: string, { env, clock }: DriverSetting): AsyncGenerator<Diagnosis> {
  const { connectSimulator } = await import('./remote/driver.ts');
  const driver = connectSimulator({ address, token: readToken(env) }, clock);
  try {
    const listing = await driver.list();
    const subject = `simulator at ${address}`;
    if (listing.answer === 'listed')
      yield ok(subject, `it answers, and has ${counted(listing.items.length, 'machine')}`);
    else
      yield broken(
        subject,
        listing.reason,
        'Start `berth simulator` there, with the same BERTH_SIMULATOR_TOKEN as here.',
      );
  } finally {
    await driver.close();
  }
}

/** The token that a `berth simulator` requires. Undefined if it requires none. @throws {Fatal} */
export function readToken(env: DriverSetting['env']): string | undefined {
  return readSecret(env, 'BERTH_SIMULATOR_TOKEN');
}

/** Opens the simulator in this process, with the catalog's units. @throws {Fatal} */
export async function openSimulator(
  catalog: Catalog,
  stateFile: string,
  clock: DriverSetting['clock'],
  platform: Partial<SimulatorBehavior> = {},
): Promise<PlatformDriver> {
  const { createSimulator } = await import('./platform/simulator.ts');
  try {
    mkdirSync(dirname(stateFile), { recursive: true, mode: 0o700 });
    const options = {
      stateFile,
      platform,
      get capacity() {
        return capacityOf(catalog);
      },
    };
    return await createSimulator(options, clock);
  } catch (error) {
    throw unusableState(stateFile, error);
  }
}

/** Checks whether a simulator in this process could use the file. Writes nothing. @throws {Fatal} */
export function checkState(stateFile: string): void {
  try {
    assertStateFile(stateFile);
    assertStateFree(stateFile);
  } catch (error) {
    throw unusableState(stateFile, error);
  }
}

/**
 * The path of the state file: beside the orchestrator's database, or in the working directory if that is not a file.
 * The name includes the platform, unless it is the default one.
 */
function stateFileOf({ databaseFile, platform }: Pick<DriverSetting, 'databaseFile' | 'platform'>): string {
  const simulator = platform === DEFAULT_PLATFORM ? 'simulator' : `simulator-${platform}`;
  return databaseFile === undefined ? resolve('.berth', `${simulator}.db`) : `${databaseFile}.${simulator}`;
}

function capacityOf({ offers, regions }: Catalog): SimulatedCapacity[] {
  return [...offers.values()].flatMap((offer) =>
    offer.placements.map(({ region, units }) => ({
      offerId: offer.id,
      datacenter: regions.get(region)?.datacenter ?? region,
      units,
      spot: offer.instanceType === 'SPOT',
      size: {
        vcpus: offer.vcpus,
        memoryGb: offer.memoryGb,
        rootDiskGb: offer.rootDisk?.maxGb ?? offer.storageGb,
        gpuCount: offer.gpuCount ?? 0,
        gpuType: offer.gpuType,
      },
    })),
  );
}
