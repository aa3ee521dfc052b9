import type { ProviderProfile } from '../marketplace/providers/profile.ts';
import type { DriverManifest } from '../orchestrator/model/platform-driver.ts';

const CLOUD_INIT_BYTES = 64 * 1024;

/** What a provider's platform can do, by the rules of its profile. */
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

/** Where a volume goes on only at the create, a machine that runs gets none. */
function attachVolumeOf(volumes: ProviderProfile['volumes']): DriverManifest['attachVolume'] {
  if (volumes === null) return 'none';
  const { attach } = volumes;
  return attach.supported && attach.restarts_instance !== true ? 'hot' : 'cold';
}
