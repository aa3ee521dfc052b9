import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IncusApi } from '../../../src/drivers/incus/api.ts';
import { IncusClient } from '../../../src/drivers/incus/client.ts';
import { isNotFound } from '../../../src/drivers/incus/errors.ts';
import { contentsOf, imageFile, lan, Node, openLan, waitFor } from './node.ts';

export const tenants = { network: 'tenants', gateway: '10.88.0.1', subnet: '10.88.0.0/24', acl: 'tenants' };
export const image = { alias: 'debian', name: 'debian-12' };
const POOL_SIZE = '8GiB';

export interface Cluster extends AsyncDisposable {
  nodes: readonly [Node, Node, Node];
  /** Of each member, over its socket. */
  api: IncusApi;
  folder: string;
  /** `platform:` of berth.yaml for it, in JSON. */
  platform(more?: object): Record<string, unknown>;
  /** Every kind of thing that Berth makes, by name: what is there must be the same before and after. */
  contents(): Promise<string[]>;
  /** Each member unpacks the image again for the next machine there. */
  forgetUnpackedImage(): Promise<void>;
  /** Until a member is shown so. */
  shown(name: string, status: 'Online' | 'Offline'): Promise<void>;
}

/** A cluster of three, with a pool, a network as docs/how-to/incus.md sets it up, and an image. */
export async function startCluster(): Promise<Cluster> {
  const network = openLan();
  const { folder } = network;
  const nodes = [1, 2, 3].map((index) => new Node(index, network)) as [Node, Node, Node];
  await Promise.all(nodes.map((node) => node.powerOn()));
  await Promise.all(nodes.map((node) => node.startIncus()));
  const clients = nodes.map(
    (node) => new IncusClient({ addresses: [`unix:${node.socket}`], project: 'default' }),
  );
  const [first, ...others] = clients as [IncusClient, IncusClient, IncusClient];
  await form(nodes, first, others);
  const api = new IncusApi(first);
  const files = await trustClient(first, folder);
  await importImage(nodes[0]);
  const addresses = Object.fromEntries(nodes.map((node) => [node.name, node.address]));
  const cluster: Cluster = {
    nodes,
    api,
    folder,
    platform: (more = {}) => ({
      driver: 'incus',
      address: nodes.map((node) => `https://${node.address}:8443`),
      ...files,
      storage_pool: 'local',
      network: tenants.network,
      port_forwards: { ports: '22000-22099', addresses },
      images: { [image.name]: { alias: image.alias, login_user: 'debian' } },
      overcommit: { cpu: 8 },
      ...more,
    }),
    contents: () => contentsOf(api, 'local', tenants.network),
    async forgetUnpackedImage() {
      const { metadata } = await first.get(`/1.0/images/aliases/${image.alias}`);
      const path = `/1.0/storage-pools/local/volumes/image/${(metadata as { target: string }).target}`;
      for (const { name: target } of nodes)
        await first.send('DELETE', path, { query: { target }, unpackedImage: true }).catch((error) => {
          if (!isNotFound(error)) throw error;
        });
    },
    async shown(name, status) {
      await waitFor(`${name} is ${status}`, async () =>
        (await api.members()).some((member) => member.server_name === name && member.status === status),
      );
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.close()));
      await network.close(nodes);
    },
  };
  return cluster;
}

async function form(
  nodes: readonly Node[],
  first: IncusClient,
  others: readonly IncusClient[],
): Promise<void> {
  const clients = [first, ...others];
  for (const [index, { address }] of nodes.entries())
    await clients[index]?.send('PATCH', '/1.0', {
      body: { config: { 'core.https_address': `${address}:8443` } },
    });
  await first.send('POST', '/1.0/storage-pools', {
    body: { name: 'local', driver: 'btrfs', config: { size: POOL_SIZE } },
  });
  await first.send('POST', '/1.0/network-acls', { body: tenantRules() });
  await first.send('POST', '/1.0/networks', {
    body: {
      name: tenants.network,
      type: 'bridge',
      config: {
        'ipv4.address': `${tenants.gateway}/24`,
        'ipv4.nat': 'true',
        'ipv6.address': 'none',
        'security.acls': tenants.acl,
        'security.acls.default.ingress.action': 'allow',
        'security.acls.default.egress.action': 'allow',
      },
    },
  });
  await ended(first, await first.send('PUT', '/1.0/cluster', { body: { server_name: 'n1', enabled: true } }));
  const { metadata } = await first.get('/1.0');
  const { certificate } = (metadata as { environment: { certificate: string } }).environment;
  for (const [index, client] of others.entries()) {
    const node = nodes[index + 1] as Node;
    const invited = await first.send('POST', '/1.0/cluster/members', { body: { server_name: node.name } });
    const { serverName, fingerprint, addresses, secret, expiresAt } = (
      invited.metadata as { metadata: Record<string, unknown> }
    ).metadata;
    const token = { server_name: serverName, fingerprint, addresses, secret, expires_at: expiresAt };
    const reply = await client.send('PUT', '/1.0/cluster', {
      body: {
        server_name: node.name,
        enabled: true,
        server_address: `${node.address}:8443`,
        cluster_address: `${lan.member(1)}:8443`,
        cluster_certificate: certificate,
        cluster_token: Buffer.from(JSON.stringify(token)).toString('base64'),
        member_config: [{ entity: 'storage-pool', name: 'local', key: 'size', value: POOL_SIZE }],
      },
    });
    await ended(client, reply);
  }
  await first.send('PATCH', '/1.0', { body: { config: { 'cluster.offline_threshold': '11' } } });
}

/** As docs/how-to/incus.md says: machines reach the world, and neither the hosts nor what is behind them. */
function tenantRules(): object {
  return {
    name: tenants.acl,
    egress: [
      { action: 'drop', state: 'enabled', destination: `${tenants.gateway}/32` },
      { action: 'drop', state: 'enabled', destination: lan.network },
    ],
    ingress: [],
  };
}

async function ended(client: IncusClient, { operation }: { operation: string | undefined }): Promise<void> {
  const api = new IncusApi(client);
  await waitFor('the operation has ended', async () => {
    const found = operation === undefined ? undefined : await api.operation(operation).catch(() => null);
    if (found === null) return false;
    if (found !== undefined && found.status_code >= 400) throw new Error(found.err);
    return found === undefined || found.status_code === 200;
  });
}

/** Makes a key and its certificate, which no server trusts yet. Their files are beside each other. */
export function makeCertificate(folder: string, name: string): { certificate: string; key: string } {
  const [certificate, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-days', '2'];
  const files = ['-subj', `/CN=${name}`, '-keyout', key, '-out', certificate];
  execFileSync('openssl', ['req', '-x509', ...kind, ...files], { stdio: 'ignore' });
  return { certificate, key };
}

async function trustClient(client: IncusClient, folder: string) {
  const at = (name: string): string => join(folder, name);
  makeCertificate(folder, 'client');
  const pem = readFileSync(at('client.crt'), 'utf8');
  const certificate = pem.replace(/-----[A-Z ]+-----|\s/g, '');
  await client.send('POST', '/1.0/certificates', { body: { name: 'berth', type: 'client', certificate } });
  const { metadata } = await client.get('/1.0');
  writeFileSync(
    at('server.crt'),
    (metadata as { environment: { certificate: string } }).environment.certificate,
  );
  return {
    client_certificate: at('client.crt'),
    client_key: at('client.key'),
    server_certificate: at('server.crt'),
  };
}

async function importImage(node: Node): Promise<void> {
  node.run('incus', 'image', 'import', imageFile, '--alias', image.alias);
}
