import { createHash } from 'node:crypto';
import { isOfAll, type ProviderProfile } from '../marketplace/providers/profile.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import type { DriverManifest, Endpoint } from '../orchestrator/model/platform-driver.ts';
import type { Platform } from '../platform-model/platform.ts';
import { isGuestUp, type MachineRecord } from '../platform-model/records.ts';
import type { PlatformRules } from '../platform-model/rules.ts';
import type { Clock } from '../ports/clock.ts';
import type { ProbeResult, SshProbe } from '../ports/ssh-probe.ts';
import type { Timing } from './options.ts';

export interface SandboxMachine extends MachineRecord {
  /** `SHA256:…`, as OpenSSH prints it. */
  hostKey: string;
}

export type SandboxPlatform = Platform<SandboxMachine>;

export function rulesOf(
  catalog: Catalog,
  manifest: DriverManifest,
  timing: Timing,
  seed: string,
): PlatformRules<SandboxMachine> {
  // The catalog may be reloaded: each call reads it anew.
  const datacenterOf = (region: string): string => catalog.regions.get(region)?.datacenter ?? region;
  const types = () =>
    [...catalog.regions.values()].flatMap(({ datacenter, volumeTypes }) =>
      volumeTypes.map((type) => ({ datacenter, type })),
    );
  return {
    manifest,
    durations: timing,
    units: (offerId, datacenter) =>
      catalog.offers.get(offerId)?.placements.find(({ region }) => datacenterOf(region) === datacenter)
        ?.units,
    hasVolumes: (datacenter) => types().some((type) => type.datacenter === datacenter),
    isShareable: (name) => types().some(({ type }) => type.name === name && type.shareable),
    holdsUnitStopped: ({ offerId }) => catalog.offers.get(offerId)?.onStop === 'hold',
    make: ({ ref }) => ({
      hostKey: `SHA256:${createHash('sha256').update(`${seed}/${ref}`).digest('base64').replace('=', '')}`,
    }),
    endpoint: endpointOf,
  };
}

/** Documentation addresses (RFC 5737), which are never assigned. Each machine has one of them, with its own port. */
const DOCUMENTATION_NETWORKS = ['203.0.113', '198.51.100', '192.0.2'];
const HOSTS = 254;
const FIRST_PORT = 22_000;

function endpointOf({ number, power, hostKey }: SandboxMachine): Endpoint | undefined {
  if (power === 'building' || power === 'failed') return undefined;
  const address = (number - 1) % (HOSTS * DOCUMENTATION_NETWORKS.length);
  const round = Math.floor((number - 1) / (HOSTS * DOCUMENTATION_NETWORKS.length));
  const sshPort = round === 0 ? 22 : FIRST_PORT + round;
  return {
    publicIp: `${DOCUMENTATION_NETWORKS[Math.floor(address / HOSTS)]}.${1 + (address % HOSTS)}`,
    privateIp: `10.${Math.floor(number / 65_536) % 256}.${Math.floor(number / 256) % 256}.${number % 256}`,
    sshPort,
    sshUsername: 'ubuntu',
    portForwards: [{ internal_port: 22, external_port: sshPort }],
    hostKeyFingerprint: hostKey,
  };
}

/** Answers SSH probes from the model, without a network connection. */
export function modelProbe(platform: SandboxPlatform, clock: Pick<Clock, 'now'>): SshProbe {
  return {
    async probe({ host, port }, keys, fingerprint): Promise<ProbeResult> {
      const machine = platform.machines.all().find((candidate) => {
        const endpoint = endpointOf(candidate);
        return endpoint?.publicIp === host && endpoint.sshPort === port;
      });
      if (machine === undefined || !isGuestUp(machine, clock.now()))
        return { ok: false, step: 'connect', detail: 'connection refused' };
      if (fingerprint !== undefined && fingerprint !== machine.hostKey)
        return { ok: false, step: 'host_key', detail: `the host key is ${machine.hostKey}` };
      const keyIndex = keys.findIndex((key) => !machine.spec.sshKeys.includes(key));
      if (keyIndex !== -1) return { ok: false, step: 'auth', keyIndex, detail: 'the key was refused' };
      return { ok: true, hostKeyFingerprint: machine.hostKey };
    },
  };
}

const CLOUD_INIT_BYTES = 64 * 1024;

/** The capabilities of a provider's platform, from its profile. */
export function manifestOf(profile: ProviderProfile): DriverManifest {
  const { volumes } = profile;
  const stop = !isOfAll(profile, 'no_stop');
  return {
    name: 'sandbox',
    stop,
    resume: stop,
    restart: !isOfAll(profile, 'no_restart'),
    attachVolume: attachVolumeOf(volumes),
    resizeVolume: volumes?.grow ? 'attached' : 'none',
    createVisibleWithinMs: 0,
    keepsNotes: true,
    volumeUsage: volumes !== null,
    cloudInitBytes: CLOUD_INIT_BYTES,
  };
}

/** If volumes can only be attached at the create, a running machine cannot get one. */
function attachVolumeOf(volumes: ProviderProfile['volumes']): DriverManifest['attachVolume'] {
  if (volumes === null) return 'none';
  return volumes.no_attach === undefined && !volumes.attach_restarts_instance ? 'hot' : 'cold';
}
