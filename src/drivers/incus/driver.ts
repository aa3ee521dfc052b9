import { readFileSync } from 'node:fs';
import { Fatal } from '../../ports/errors.ts';
import type { DriverDefinition } from '../kit/driver-definition.ts';
import type { Connection } from './client.ts';
import { type IncusConfig, incusConfigSchema, incusOfferSchema } from './options.ts';

/**
 * Machines of an Incus daemon or cluster: system containers, and virtual machines on hosts that support them. The
 * code that connects to Incus is loaded when the driver is opened.
 */
export const incus: DriverDefinition<IncusConfig> = {
  name: 'incus',
  about: {
    provedOn: 'Incus 6.0.4, on a daemon and on a cluster of three, with containers',
    provedBy: [
      'test/lab/incus/driver.lab.test.ts',
      'test/lab/incus/single.lab.test.ts',
      'test/lab/incus/serve.lab.test.ts',
      'test/lab/incus/interrupted.lab.test.ts',
    ],
    traps: [
      'Virtual machines, OVN networks and GPUs were not tried on a real host.',
      'Containers have the clock, the kernel and the devices of their host.',
      'Volumes of other projects, and machines that another Berth process places at the same moment, are not counted as capacity.',
      'Two servers that change the forwards of one address within milliseconds can lose one change until the next listing.',
    ],
    guide: 'how-to/incus.md',
  },
  async manifests() {
    const { manifestOf } = await import('./open.ts');
    return (['filesystem', 'block'] as const).map((content) => ({
      setting: `volume_content: ${content}`,
      manifest: manifestOf({ volume_content: content }),
    }));
  },
  configSchema: incusConfigSchema,
  fileKeys: ['client_certificate', 'client_key', 'server_certificate'],
  offerSchema: incusOfferSchema,
  placesOnHosts: true,
  check(options) {
    toConnection(options);
  },
  async *diagnose(options, { catalog, clock, asking }) {
    const { diagnose } = await import('./diagnosis/diagnose.ts');
    yield* diagnose(options, catalog, () => clock.now(), { ...toConnection(options), asking });
  },
  async open(options, setting) {
    const { openIncus } = await import('./open.ts');
    const connection = toConnection(options);
    if (connection.tls !== undefined) {
      setting.certificateSeen?.('incus_server')({ pem: connection.tls.serverCertificate });
      setting.certificateSeen?.('incus_client')({ pem: connection.tls.certificate });
    }
    return openIncus(options, { ...connection, asking: setting.asking }, setting);
  },
};

/** @throws {Fatal} with a message for the operator */
function toConnection(options: IncusConfig): Connection {
  const {
    address,
    client_certificate: certificate,
    client_key: key,
    server_certificate: server,
    project,
  } = options;
  if (!address.some((one) => one.startsWith('https:'))) return { addresses: address, project };
  if (certificate === undefined || key === undefined || server === undefined)
    throw new Fatal(
      'platform.address is https: set platform.client_certificate, platform.client_key and platform.server_certificate to PEM files.',
    );
  const tls = {
    certificate: readPem('client_certificate', certificate),
    key: readPem('client_key', key),
    serverCertificate: readPem('server_certificate', server),
  };
  return { addresses: address, tls, project };
}

function readPem(name: string, file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fatal(
      `platform.${name}: ${file} cannot be read (${error instanceof Error ? error.message : error}).`,
      { cause: error },
    );
  }
  if (!text.includes('-----BEGIN ')) throw new Fatal(`platform.${name}: ${file} is not a PEM file.`);
  return text;
}
