import type { ExpectStatic } from 'vitest';
import type { Interruptions } from './interruptions.ts';
import type { LabReplicas } from './lab-replicas.ts';
import { type Machine, nameOf } from './lab-server.ts';

/** What an engine's part of the life is. */
interface Stage {
  /** Of the test: others run beside it. */
  expect: ExpectStatic;
  servers: LabReplicas;
  interruptions: Interruptions;
  /** Also stops, starts and restarts the machine. */
  stopsToo: boolean;
  /** What the machine and the volume are made with. */
  machine: object;
  volume: object;
  /** Lines for a machine's shell: writes standard input to the volume, and prints its first line. */
  write(volume: string): string;
  read(volume: string): string;
  /** The same as `read`, at the engine, while the volume is attached to nothing. */
  readDetached(volume: string): string | Promise<string>;
  /** The path of another machine, on another host: a volume can be moved there. */
  other?: string;
  /** All that Berth has made there, by name. */
  contents(): string[] | Promise<string[]>;
}

const ON_DISK = 'on the disk';
const ON_VOLUME = 'on the volume';

/** The life of a machine and a volume, with a server interrupted at each command that changes something. */
export async function liveThroughInterruptions(stage: Stage): Promise<void> {
  const { expect, servers, interruptions, contents, other } = stage;
  const send = async (method: string, path: string, body?: object): Promise<void> => {
    const { status, body: answer } = await servers.request(method, path, body);
    // 404 and 409: it was sent twice, since the server that took it was interrupted.
    expect([200, 201, 202, 204, 404, 409], JSON.stringify(answer)).toContain(status);
  };
  const attach = async (to: string): Promise<void> => {
    await send('POST', `${volume}/attach`, { instance_ids: [to.split('/').at(-1)] });
    await servers.waitFor(volume, 'ATTACHED');
  };
  const detach = async (): Promise<void> => {
    await send('POST', `${volume}/detach`);
    await servers.waitFor(volume, 'AVAILABLE');
  };
  const says = (machine: Machine, line: string) =>
    expect.poll(async () => (await servers.login(machine, line)).stdout.trim());

  interruptions.begin('make a volume');
  const volume = await servers.create('/volumes', stage.volume);
  await servers.waitFor(volume, 'AVAILABLE');
  interruptions.begin('create');
  const path = await servers.create('/instances', stage.machine);
  const machine = await servers.waitFor(path, 'ONLINE');
  const isIt = new RegExp(`^(instance )?${nameOf(path)}(-g\\d+)?$`);
  await expect.poll(async () => (await contents()).filter((name) => isIt.test(name))).toHaveLength(1);
  interruptions.begin('attach');
  await attach(path);
  await says(
    machine,
    `echo ${ON_DISK} >text; echo ${ON_VOLUME} | ${stage.write(volume)}; sync; cat text`,
  ).toBe(ON_DISK);
  interruptions.begin('resize');
  await send('POST', `/x${volume}/resize`, { size_gb: 2 });
  await servers.waitFor(volume, '2', 'size_gb');
  interruptions.begin('detach');
  await detach();
  expect(await stage.readDetached(volume)).toBe(ON_VOLUME);
  if (stage.stopsToo) {
    interruptions.begin('stop');
    await send('POST', `${path}/stop`);
    await servers.waitFor(path, 'STOPPED');
    interruptions.begin('start');
    await send('POST', `${path}/start`);
    await servers.waitFor(path, 'ONLINE');
    interruptions.begin('restart');
    await send('POST', `/x${path}/restart`);
    await servers.waitFor(`/x${path}/restart`, 'false', 'restarting');
  }
  if (other !== undefined) {
    interruptions.begin('move');
    await attach(other);
    await says(await servers.waitFor(other, 'ONLINE'), stage.read(volume)).toBe(ON_VOLUME);
    interruptions.begin(undefined);
    await detach();
  }
  interruptions.begin('attach again');
  await attach(path);
  await says(await servers.waitFor(path, 'ONLINE'), `cat text; ${stage.read(volume)}`).toBe(
    `${ON_DISK}\n${ON_VOLUME}`,
  );
  interruptions.begin('delete');
  await send('DELETE', path);
  await servers.waitFor(path, 'GONE');
  await servers.waitFor(volume, 'AVAILABLE');
  expect(await stage.readDetached(volume)).toBe(ON_VOLUME);
  interruptions.begin('delete the volume');
  await send('DELETE', volume);
  await servers.waitFor(volume, 'GONE');
  await interruptions.end();
  if (other !== undefined) await send('DELETE', other);
  if (other !== undefined) await servers.waitFor(other, 'GONE');
  const ids = [path, volume, other].flatMap((each) => each?.split('/').at(-1) ?? []);
  const isOurs = (name: string): boolean => ids.some((id) => name.includes(id));
  await expect.poll(async () => (await contents()).filter(isOurs)).toEqual([]);
  for (const each of [path, volume]) expect((await servers.request('GET', each)).status).toBe(404);
}
