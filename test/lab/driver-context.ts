import { setTimeout as sleep } from 'node:timers/promises';
import type { DriverContext } from '../../src/drivers/kit/driver.suite.ts';
import type { DriverSetting } from '../../src/drivers/kit/driver-definition.ts';
import { guestLogin } from '../../src/drivers/kit/guest.fixture.ts';
import type { Offer } from '../../src/orchestrator/catalog/catalog.ts';
import type { MachineSpec, ObservedMachine } from '../../src/orchestrator/model/platform-driver.ts';
import { systemClock } from '../../src/runtime/system.ts';
import { collectLog } from '../support/doubles/log.ts';

/** A machine that an engine of the lab sells. */
export interface LabMachine {
  datacenter: string;
  image: string;
  vcpus: number;
  memoryGb: number;
  /** The default is `release`. */
  onStop?: Offer['onStop'] | undefined;
}

/** How many of them the engine has room for. */
export const UNITS = 2;
const STORAGE_GB = 1;
const offerId = 'small';
const { sshKeys, guest } = guestLogin();

/** Runs a line in the machine's shell, as its login user; what it printed. */
export const run = (machine: ObservedMachine, line: string): Promise<string> =>
  guest.run?.(machine, line) ?? Promise.reject();

/** What a driver is opened with that sells such machines and no others; `machine` is the offer's own part. */
export function settingOf(
  { datacenter, image, vcpus, memoryGb, onStop = 'release' }: LabMachine,
  machine: Offer['machine'] = {},
): DriverSetting {
  /** What a driver reads of an offer. */
  const offer: Partial<Offer> = {
    id: offerId,
    machine,
    vcpus,
    memoryGb,
    storageGb: STORAGE_GB,
    gpuCount: undefined,
    placements: [{ region: datacenter, units: UNITS }],
    osOptions: [image],
    onStop,
  };
  return {
    platform: 'default',
    catalog: { regions: new Map(), offers: new Map([[offerId, offer as Offer]]) },
    databaseFile: undefined,
    env: {},
    clock: systemClock,
    log: collectLog().log,
  };
}

export const specOf = (ref: string, { datacenter, image, vcpus, memoryGb }: LabMachine): MachineSpec => ({
  ref,
  offerId,
  datacenter,
  hostname: ref,
  image,
  vcpus,
  memoryGb,
  rootDiskGb: STORAGE_GB,
  gpuCount: 0,
  gpuType: undefined,
  sshKeys,
  cloudInit: undefined,
  note: 'a note',
});

type Engine = Pick<DriverContext, 'driver' | 'reopen' | 'openUnreachable' | 'removeReleased'>;

/** What the suite of all drivers is given of an engine; `volume` writes and reads in a machine. */
export const contextOf = (
  machine: LabMachine,
  volume: NonNullable<DriverContext['guest']>['volume'],
  engine: Engine,
): DriverContext => ({
  ...engine,
  machineSpec: (ref) => specOf(ref, machine),
  volumeSpec: (ref) => ({
    ref,
    datacenter: machine.datacenter,
    sizeGb: 0.125,
    type: undefined,
    note: 'a note',
  }),
  units: UNITS,
  wait: (ms) => sleep(ms),
  now: () => Date.now(),
  patienceMs: 120_000,
  guest: { ...guest, ...(volume && { volume }) },
  impossible: { image_missing: { image: 'no-such-image' }, capacity: { vcpus: 10_000 } },
});
