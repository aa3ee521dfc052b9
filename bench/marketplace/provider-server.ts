import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerBench } from '../support/measured-process.ts';

// A provider with one offer that never sells out: every id is an ONLINE machine. It counts its polls.
const region = 'eu-frankfurt';
const configuration = {
  id: 'h100',
  name: 'H100',
  instance_type: 'DEDICATED',
  description: 'A machine.',
  vcpus: 24,
  memory_gb: 200,
  storage_gb: 750,
  gpu_count: 1,
  gpu_type: 'NVIDIA H100 SXM',
  gpu_memory_gb: 80,
  price_per_hour: 2,
  available: true,
  regions: [region],
  supports_cloud_init: true,
  os_options: ['ubuntu-24.04'],
};
const since = new Date().toISOString();
let made = 0;
let polls = 0;

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '', 'http://provider');
  void bodyOf(request).then((body) => {
    response.writeHead(request.method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(answer(request.method ?? '', pathname.slice('/v1'.length), body)));
  });
});
server.listen(0, '127.0.0.1', () => answerBench({ port: (server.address() as AddressInfo).port }));

function answer(method: string, path: string, body: string): object {
  const [, collection, id] = path.split('/');
  if (collection === 'configurations' || collection === 'availability')
    return { configurations: [configuration] };
  if (method === 'POST') return instance(`made-${++made}`, (JSON.parse(body) as { name: string }).name);
  if (collection === 'polls') return { polls };
  if (id !== undefined) polls++;
  // A marketplace that has lost nothing finds nothing in its sweep.
  return id === undefined ? { instances: [] } : instance(id, 'bench');
}

function instance(id: string, name: string): object {
  return {
    id,
    name,
    status: 'ONLINE',
    configuration_id: configuration.id,
    instance_type: configuration.instance_type,
    region,
    public_ip: '203.0.113.17',
    private_ip: '10.20.3.17',
    ssh_port: 22,
    ssh_username: 'ubuntu',
    port_forwards: [],
    vcpus: configuration.vcpus,
    memory_gb: configuration.memory_gb,
    storage_gb: configuration.storage_gb,
    gpu_count: configuration.gpu_count,
    gpu_type: configuration.gpu_type,
    price_per_hour: configuration.price_per_hour,
    created_at: since,
    updated_at: since,
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}
