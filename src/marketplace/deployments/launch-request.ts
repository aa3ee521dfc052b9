import type { CloudInit } from '../../contract/cloud-init.ts';
import type { CreateInstanceRequest } from '../../contract/instance.ts';
import type { RequestedCloudInit } from '../contract/deployment.ts';

/** What the provider is asked for (O: CreateInstanceRequest). */
export function toLaunchRequest(wanted: {
  providerName: string;
  offerId: string;
  region: string;
  /** Null: the provider's default (O: "provider default if omitted"). */
  image: string | null;
  publicKey: string;
  cloudInit: RequestedCloudInit | undefined;
  providerVolumeIds: readonly string[];
}): CreateInstanceRequest {
  return {
    configuration_id: wanted.offerId,
    region: wanted.region,
    ssh_keys: [wanted.publicKey],
    name: wanted.providerName,
    ...(wanted.image !== null && { operating_system_image: wanted.image }),
    ...(wanted.cloudInit !== undefined && { cloud_init: toCloudInit(wanted.cloudInit) }),
    ...(wanted.providerVolumeIds.length > 0 && { volume_ids: [...wanted.providerVolumeIds] }),
  };
}

/** M: `writeFiles` is O: `write_files`; the rest has the same names. */
function toCloudInit({ runcmd, packages, writeFiles }: RequestedCloudInit): CloudInit {
  return {
    ...(runcmd !== undefined && { runcmd }),
    ...(packages !== undefined && { packages }),
    ...(writeFiles !== undefined && { write_files: writeFiles }),
  };
}
