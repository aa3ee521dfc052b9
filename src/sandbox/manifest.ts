import type { ProviderProfile } from '../marketplace/providers/profile.ts';
import type { DriverManifest } from '../orchestrator/model/platform-driver.ts';

const CLOUD_INIT_BYTES = 64 * 1024;

/** The capabilities of a provider's platform, from its profile. */
export function manifestOf({ instances, volumes }: ProviderProfile): DriverManifest {
  const { stop, restart } = instances;
  return {
    name: 'sandbox',
    stop: stop.supported,
    resume: stop.supported,
    restart: restart.supported,
    attachVolume: attachVolumeOf(volumes),
    resizeVolume: volumes?.grow ? 'attached' : 'none',
    createVisibleWithinMs: 0,
    keepsNotes: true,
    cloudInitBytes: CLOUD_INIT_BYTES,
  };
}

/** If volumes can only be attached at the create, a running machine cannot get one. */
function attachVolumeOf(volumes: ProviderProfile['volumes']): DriverManifest['attachVolume'] {
  if (volumes === null) return 'none';
  const { attach } = volumes;
  return attach.supported && attach.restarts_instance !== true ? 'hot' : 'cold';
}
