import type { DriverManifest, Endpoint } from '../../../orchestrator/model/platform-driver.ts';
import type { PlatformRules } from '../../../platform-model/rules.ts';
import { generateHostKey } from '../../kit/host-key.ts';
import { GUEST_USER } from '../guest/guest.ts';
import type { Draws, SimulatedCapacity, SimulatorBehavior } from '../options.ts';
import { hostRulesOf } from './hosts.ts';
import type { SimulatedMachine } from './records.ts';

/** Longest poll interval. */
const MAX_POLL_AFTER_MS = 1_000;
/** The default size limit of a request. A machine's disk could hold more. */
const CLOUD_INIT_BYTES = 1024 * 1024;

/** The rules of the configured platform. `host`: the public address of every machine. */
export function rulesOf(
  config: SimulatorBehavior,
  { capacity, host, draws }: { capacity: () => readonly SimulatedCapacity[]; host: string; draws: Draws },
): PlatformRules<SimulatedMachine> {
  const { volumeMs, reapStoppedAfterS: reapAfterS, reclaimSpotAfterS: reclaimAfterS } = config;
  const pools = (): SimulatedCapacity[] => poolsOf(capacity());
  const poolOf = (offerId: string, datacenter: string): SimulatedCapacity | undefined =>
    pools().find((pool) => pool.offerId === offerId && pool.datacenter === datacenter);
  const [restartMin, restartMax] = config.restartMs;
  return {
    manifest: manifestOf(config, 0),
    durations: {
      boot: config.bootMs,
      stop: config.stopMs,
      start: config.startMs,
      // Never zero: for a moment no guest answers, so that the restart is a new boot.
      restart: [Math.max(1, restartMin), Math.max(1, restartMax)],
      destroy: config.destroyMs,
      volume: { create: volumeMs, attach: volumeMs, detach: volumeMs, resize: volumeMs, destroy: volumeMs },
    },
    longestPollMs: MAX_POLL_AFTER_MS,
    units: (offerId, datacenter) => poolOf(offerId, datacenter)?.units,
    get places() {
      return pools().map(({ offerId, datacenter }) => ({ offerId, datacenter }));
    },
    hosts: hostRulesOf(pools),
    hasVolumes: (there) => capacity().some(({ datacenter }) => datacenter === there),
    bootFailureRate: config.bootFailureRate,
    ...(reapAfterS !== undefined && { reapStoppedAfterMs: reapAfterS * 1000 }),
    reclaimAfterMs({ offerId, datacenter }) {
      if (reclaimAfterS === undefined || !poolOf(offerId, datacenter)?.spot) return undefined;
      return [reclaimAfterS[0] * 1000, reclaimAfterS[1] * 1000];
    },
    make: ({ ref }) => newGuest(!draws.happens(`${ref}/ssh-never-up`, config.sshNeverUpRate)),
    endpoint: (machine) => endpointOf(machine, host),
  };
}

/** The capacity with the regions of a datacenter together. */
function poolsOf(capacity: readonly SimulatedCapacity[]): SimulatedCapacity[] {
  const parts = Map.groupBy(capacity, ({ offerId, datacenter }) => `${datacenter}/${offerId}`);
  return [...parts.values()].map((pool) => ({
    ...(pool[0] as SimulatedCapacity),
    units: pool.reduce((sum, { units }) => sum + units, 0),
    spot: pool.some(({ spot }) => spot),
  }));
}

/** The guest of a machine that has not booted yet. */
export function newGuest(sshListens: boolean) {
  const { privateKey, fingerprint } = generateHostKey();
  const sshHostKey = { privateKey, fingerprint };
  return { sshListens, sshPort: null, sshHostKey, cloudInitUntil: null, runcmdDone: 0 };
}

/** `createVisibleWithinMs`: see the port. */
export function manifestOf(
  { attachVolume }: Pick<SimulatorBehavior, 'attachVolume'>,
  createVisibleWithinMs: number,
): DriverManifest {
  return {
    name: 'simulator',
    stop: true,
    resume: true,
    restart: true,
    attachVolume,
    resizeVolume: attachVolume === 'hot' ? 'attached' : 'detached',
    createVisibleWithinMs,
    keepsNotes: true,
    volumeUsage: true,
    cloudInitBytes: CLOUD_INIT_BYTES,
    fences: true,
    marksWriter: true,
  };
}

/** The endpoint of a machine. Undefined if it has not booted yet. */
export function endpointOf(machine: SimulatedMachine, host: string): Endpoint | undefined {
  const { sshPort, sshHostKey } = machine;
  if (sshPort === null) return undefined;
  return {
    publicIp: host,
    privateIp: privateIpOf(machine),
    sshPort,
    sshUsername: GUEST_USER,
    portForwards: [{ internal_port: 22, external_port: sshPort }],
    hostKeyFingerprint: sshHostKey.fingerprint,
  };
}

/** The machine's address in the platform's network, unique in 10.0.0.0/8. */
function privateIpOf({ number }: Pick<SimulatedMachine, 'number'>): string {
  const hosts = 254;
  return `10.${64 + (Math.floor(number / (hosts * 256)) % 128)}.${Math.floor(number / hosts) % 256}.${1 + (number % hosts)}`;
}
