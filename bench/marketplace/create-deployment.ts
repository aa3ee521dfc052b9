import { newPublicKey } from '../../test/support/doubles/ssh-keys.ts';
import { sendLoad } from '../support/load.ts';
import { withMarketplace } from './measured-marketplace.ts';

export interface Creates {
  live: number;
  /** CPU of the process for one create, including the following call to the provider. */
  cpuMs: number;
}

const WARM_UP = 100;
/** Long enough that no poll and no slice falls into the measurement. */
const NEVER_S = 3_600;

/** Measures `POST /api/deployments` in a team that has `live` deployments. */
export function measureCreates(live: number, { creates = 200 } = {}): Promise<Creates> {
  const options = { live, intervalS: [NEVER_S, NEVER_S] } as const;
  return withMarketplace(options, async ({ server, apiKey }) => {
    const { port } = server;
    const load = { port, requests: [toCreate(apiKey)], connections: 1, expectedStatus: 201 };
    await sendLoad({ ...load, count: WARM_UP });
    const before = await server.usage();
    await sendLoad({ ...load, count: creates });
    const after = await server.usage();
    return { live, cpuMs: (after.cpuUs - before.cpuUs) / 1000 / creates };
  });
}

function toCreate(apiKey: string): Buffer {
  const body = JSON.stringify({
    provider: 'provider-b',
    offerId: 'h100',
    gpuCount: 1,
    region: 'eu-frankfurt',
    operatingSystem: 'ubuntu-24.04',
    ssh_public_key: newPublicKey(),
  });
  const head = [
    'POST /api/deployments HTTP/1.1',
    'Host: marketplace.example',
    `Authorization: Bearer ${apiKey}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}
