import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { berthOfCommit } from './berth-of-commit.ts';
import { type LabServer, type Machine, nameOf } from './lab-server.ts';

/** The last commit before orders, attempts and sightings were stored. */
const BEFORE = '4eecd2f2';
const TEXT = 'on the volume';
const EVERY_MS = 250;

/** A command of the engine that changes something: it is not carried out, or its answer is not read. */
export interface Moment {
  when: 'before' | 'after';
  command: string;
}

/** What an engine's part of the upgrade is. */
export interface Stage {
  server: LabServer;
  env?: Record<string, string>;
  /** What machines and volumes are made with. */
  machine: object;
  volume: object;
  /** Lines for a machine's shell: writes standard input to the volume, and prints its first line. */
  write(volume: string): string;
  read(volume: string): string;
  /** From now on no command of that name is answered. `reached` waits for the first. */
  hold(moment: Moment): { reached(): Promise<void> };
  /** Ends all holds. What was held is never carried out. */
  release?(): void;
  /** Where a create, a delete, and an attach of a volume is interrupted; each has a machine or a volume of its own. */
  creates: readonly Moment[];
  deletes: readonly Moment[];
  attaches: readonly Moment[];
  /** Attaches to a machine on another host, so that each is a move. */
  movesVolumes: boolean;
  /** All that Berth has made there, by name. */
  contents(): string[] | Promise<string[]>;
}

/** Kills a server of an earlier version with creates, deletes and attaches under way, and starts this one on its database. */
export async function upgradeMidway(stage: Stage): Promise<void> {
  const { server, contents } = stage;
  const tenant = tenantOf(stage);
  const interrupt = async <T>(moments: readonly Moment[], begin: (index: number) => Promise<T>) => {
    const begun: T[] = [];
    for (const [index, moment] of moments.entries()) {
      const held = stage.hold(moment);
      begun.push(await begin(index));
      await held.reached();
    }
    return begun;
  };

  await server.start({ entry: berthOfCommit(BEFORE, server.folder), env: stage.env ?? {} });
  const [kept, ...doomed] = await tenant.machines(1 + stage.deletes.length);
  const [attached, ...others] = await tenant.volumes(1 + stage.attaches.length);
  if (kept === undefined || attached === undefined) throw new Error('there is no machine or no volume');
  for (const volume of [...others, attached]) {
    await tenant.attach(volume, kept);
    await server.client.waitFor(volume, 'ATTACHED');
    await tenant.says(kept, `echo ${TEXT} | ${stage.write(volume)}; sync`);
    if (volume !== attached) await tenant.send('POST', `${volume}/detach`);
    if (volume !== attached) await server.client.waitFor(volume, 'AVAILABLE');
  }
  const process = await tenant.says(kept, 'sleep 86400 >/dev/null 2>&1 & echo $!');
  const [elsewhere = kept] = await tenant.machines(stage.movesVolumes ? 1 : 0);
  const made = await interrupt(stage.creates, () => server.create(stage.machine));
  await interrupt(stage.attaches, (index) => tenant.attach(others[index] ?? '', elsewhere));
  await interrupt(stage.deletes, (index) => tenant.send('DELETE', doomed[index] ?? ''));
  await server.kill();
  stage.release?.();

  await server.start();
  const watch = watchStatus(server, kept);
  const matching = async (pattern: string): Promise<string[]> =>
    (await contents()).filter((name) => new RegExp(`^${pattern}$`).test(name));
  const machinesOf = (path: string) => matching(`(instance )?${nameOf(path)}(-g\\d+)?`);
  const volumesOf = (path: string) => matching(`(volume )?${nameOf(path)}(-g\\d+)?(.volume| on .*)`);
  const partsOf = async (path: string): Promise<string[]> =>
    (await contents()).filter((name) => name.includes(nameOf(path)));
  await Promise.all([
    ...made.map(async (path) => {
      const { status } = await server.client.waitFor(path, 'ONLINE', 'ERROR');
      await expect.poll(async () => (await machinesOf(path)).length).toBe(status === 'ONLINE' ? 1 : 0);
    }),
    ...doomed.map(async (path) => {
      await server.client.waitFor(path, 'GONE');
      await expect.poll(() => partsOf(path)).toEqual([]);
    }),
    ...others.map(async (volume) => {
      await server.client.waitFor(volume, 'ATTACHED');
      await expect.poll(() => tenant.says(elsewhere, stage.read(volume))).toBe(TEXT);
      await expect.poll(() => volumesOf(volume)).toHaveLength(1);
    }),
  ]);
  expect(await tenant.says(kept, stage.read(attached))).toBe(TEXT);
  expect(await tenant.says(kept, `tr '\\0' ' ' </proc/${process}/cmdline`)).toBe('sleep 86400');
  expect((await machinesOf(kept)).map((name) => name.replace(/^instance /, ''))).toEqual([nameOf(kept)]);
  expect(await watch.end()).toEqual(['ONLINE']);
  expect(server.log).not.toContain('somebody copied');

  await Promise.all([...new Set([kept, elsewhere, ...made])].map((path) => server.destroy(path)));
  for (const volume of [attached, ...others]) {
    await server.client.waitFor(volume, 'AVAILABLE');
    await server.destroy(volume);
  }
  await expect.poll(contents).toEqual([]);
}

/** What a client of the server does. */
function tenantOf({ server, machine, volume }: Stage) {
  const send = async (method: string, path: string, body?: object): Promise<Machine> => {
    const answer = await server.client.request(method, path, { body });
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer.body;
  };
  const each = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, make));
  return {
    send,
    /** Paths of machines that are ONLINE. */
    machines: (count: number) =>
      each(count, async () => {
        const path = await server.create(machine);
        await server.online(path);
        return path;
      }),
    volumes: (count: number) =>
      each(count, async () => {
        const path = `/volumes/${(await send('POST', '/volumes', volume))['id']}`;
        await server.client.waitFor(path, 'AVAILABLE');
        return path;
      }),
    attach: (path: string, to: string) =>
      send('POST', `${path}/attach`, { instance_ids: [to.split('/').at(-1)] }),
    says: async (path: string, line: string): Promise<string> =>
      (await server.login(await server.online(path), line)).stdout.trim(),
  };
}

/** Every status that the path reads, or the HTTP status where that is not 200. */
function watchStatus(server: LabServer, path: string): { end: () => Promise<string[]> } {
  const found = new Set<string>();
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const { status, body } = await server.client.request('GET', path);
      found.add(String(status === 200 ? body['status'] : status));
      await sleep(EVERY_MS);
    }
  })();
  return {
    async end() {
      isOver = true;
      await watching;
      return [...found];
    },
  };
}
