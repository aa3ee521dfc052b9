import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type DestroyOrder, recordedOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  MachineSpec,
  ObservedMachine,
  ObservedVolume,
  PlatformDriver,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Request } from './protocol/messages.ts';
import type { WireMachineSpec, WireVolumeSpec } from './protocol/objects.ts';

/**
 * Answers requests from a driver in this process, as a provider's program would. A plain one declares no hosts, fences
 * and orders.
 */
export function answersOf(
  driver: PlatformDriver,
  clock: Clock,
  isPlain = false,
): (request: Request, signal?: AbortSignal) => Promise<unknown> {
  const { manifest } = driver;
  const volumes = driver.volumes as NonNullable<PlatformDriver['volumes']>;
  return async (request, signal = new AbortController().signal) => {
    const { method, ref, cookie, machine, fence } = request as Request &
      Record<'ref' | 'machine', string> & {
        cookie: string | null;
        fence?: number;
      };
    const call = fence === undefined ? undefined : { deadline: request.expires_at, fence, signal };
    const order = recordedOrder(request['order'] as DestroyOrder);
    const avoidHosts = request['avoid_hosts'] as string[] | undefined;
    if ('cookie' in request && clock.now() > request.expires_at)
      return { outcome: 'failed', code: 'transient', side_effect: 'none', detail: 'too late' };
    switch (method) {
      case 'info':
        return {
          protocol: 1,
          name: 'fixture',
          capabilities: {
            stop: manifest.stop,
            resume: manifest.resume,
            restart: manifest.restart,
            attach_volume: manifest.attachVolume,
            resize_volume: manifest.resizeVolume,
            create_visible_within_ms: manifest.createVisibleWithinMs,
            keeps_notes: manifest.keepsNotes,
            cloud_init_bytes: manifest.cloudInitBytes,
            ...(!isPlain && {
              place: driver.place !== undefined,
              place_volume: volumes.place !== undefined,
              copy_volume: volumes.copy !== undefined,
              disown: driver.disown !== undefined,
              fences: true,
              orders: true,
              writer_mark: manifest.marksWriter === true,
            }),
          },
        };
      case 'get':
        return toWire(await driver.get(ref));
      case 'list':
        return toWire(await driver.list());
      case 'place':
        return toWire(
          await driver.place?.(machineSpecOf(request['spec'] as WireMachineSpec), avoidHosts ?? []),
        );
      case 'create':
        return toWire(await driver.create(machineSpecOf(request['spec'] as WireMachineSpec), cookie, call));
      case 'stop':
        return toWire(await driver.stop(ref, cookie, call));
      case 'start':
        return toWire(await driver.start(ref, cookie, call));
      case 'restart':
        return toWire(await driver.restart(ref, String(request['restart_id']), cookie, call));
      case 'destroy':
        return toWire(await driver.destroy(ref, cookie, order, call));
      case 'disown':
        return toWire(await driver.disown?.(ref, cookie, call));
      case 'writer.read':
        return { texts: await driver.writer?.read(String(request['key'])) };
      case 'writer.write':
        await driver.writer?.write(String(request['key']), String(request['text']));
        return null;
      case 'volumes.get':
        return toWire(await volumes.get(ref));
      case 'volumes.list':
        return toWire(await volumes.list());
      case 'volumes.place':
        return toWire(
          await volumes.place?.(volumeSpecOf(request['spec'] as WireVolumeSpec), avoidHosts ?? []),
        );
      case 'volumes.create':
        return toWire(await volumes.create(volumeSpecOf(request['spec'] as WireVolumeSpec), cookie, call));
      case 'volumes.attach':
        return toWire(await volumes.attach(ref, machine, cookie, call));
      case 'volumes.detach':
        return toWire(await volumes.detach(ref, machine, cookie, call));
      case 'volumes.resize':
        return toWire(await volumes.resize(ref, Number(request['size_gb']), cookie, call));
      case 'volumes.copy':
        return toWire(
          await volumes.copy?.(ref, volumeSpecOf(request['spec'] as WireVolumeSpec), cookie, call),
        );
      case 'volumes.destroy':
        return toWire(await volumes.destroy(ref, cookie, order, call));
      default:
        throw new Error(`no ${method} here`);
    }
  };
}

function machineSpecOf(spec: WireMachineSpec): MachineSpec {
  return {
    ref: spec.ref,
    offerId: spec.offer_id,
    datacenter: spec.datacenter,
    hostname: spec.hostname,
    image: spec.image,
    vcpus: spec.vcpus,
    memoryGb: spec.memory_gb,
    rootDiskGb: spec.root_disk_gb,
    gpuCount: spec.gpu_count,
    gpuType: spec.gpu_type ?? undefined,
    sshKeys: spec.ssh_keys,
    cloudInit: spec.cloud_init ?? undefined,
    note: spec.note,
    host: spec.host,
    avoidHosts: spec.avoid_hosts,
  };
}

function volumeSpecOf({ ref, datacenter, size_gb, type, note, host }: WireVolumeSpec): VolumeSpec {
  const at = host === undefined ? {} : { host };
  return { ref, datacenter, sizeGb: size_gb, type: type ?? undefined, note, ...at };
}

const wireNames: Readonly<Record<string, string>> = {
  ...{ pollAfterMs: 'poll_after_ms', sideEffect: 'side_effect', retryAfterMs: 'retry_after_ms' },
  ...{ createdAt: 'created_at', attachedTo: 'attached_to', sizeGb: 'size_gb' },
  ...{ publicIp: 'public_ip', privateIp: 'private_ip', sshPort: 'ssh_port', sshUsername: 'ssh_username' },
  ...{ portForwards: 'port_forwards', hostKeyFingerprint: 'host_key_fingerprint' },
} satisfies Partial<Record<keyof ObservedMachine | keyof ObservedVolume | string, string>>;

/** The value with its fields renamed for the protocol. */
function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toWire);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [wireNames[name] ?? name, toWire(inner)]),
  );
}

export interface WebhookFixture extends AsyncDisposable {
  url: string;
  /** The requests received, with headers and bodies. */
  requests: { headers: IncomingMessage['headers']; body: Request }[];
}

/** A local HTTP server that passes each request to `reply`. */
export async function startWebhook(
  reply: (request: Request, response: ServerResponse) => void | Promise<void>,
): Promise<WebhookFixture> {
  const requests: WebhookFixture['requests'] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Request;
    requests.push({ headers: incoming.headers, body });
    await reply(body, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/berth`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}
