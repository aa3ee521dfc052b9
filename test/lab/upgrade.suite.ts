import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { berthOfCommit } from './berth-of-commit.ts';
import { LabServer, type Machine, nameOf } from './lab-server.ts';

/** The last commit before orders, attempts and sightings were stored. */
const BEFORE = '4eecd2f2';
const TEXT = 'on the volume';
const PACE = { everyMs: 250, withinMs: 600_000 };

/** A command of the engine that changes something: it is not carried out, or its answer is not read. */
export interface Moment {
  when: 'before' | 'after';
  command: string;
}

/** What an engine's part of the upgrade is. */
interface Stage {
  catalog: object;
  platform: object;
  offer: object;
  /** For the server of the earlier version. */
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
  const { catalog, platform, offer, contents } = stage;
  await using server = new LabServer(catalog, platform, offer, PACE);
  await server.start({ entry: berthOfCommit(BEFORE, server.folder), env: stage.env ?? {} });
  const tenant = tenantOf(server, stage);
  const begun = await beginAll(server, tenant, stage);
  await server.kill();
  stage.release?.();

  await server.start();
  using watch = watchStatus(server, begun.kept);
  await allEnd(server, tenant, stage, begun);
  expect(await watch.end()).toEqual(['ONLINE']);
  expect(server.log).not.toContain('was copied together with its tag');

  const { kept, elsewhere, made, attached, attaching } = begun;
  await Promise.all([...new Set([kept, elsewhere, ...made])].map((path) => server.destroy(path)));
  for (const volume of [attached, ...attaching]) {
    await server.client.waitFor(volume, 'AVAILABLE');
    await server.destroy(volume);
  }
  await expect.poll(contents).toEqual([]);
}

/** Paths of what there is when the server of the earlier version is killed. */
interface Begun {
  /** Is ONLINE, with `attached`, and is to be left alone. `process` runs on it. */
  kept: string;
  attached: string;
  process: string;
  made: string[];
  doomed: string[];
  /** Each has the text, and is being attached to `elsewhere`. */
  attaching: string[];
  elsewhere: string;
}

async function beginAll(server: LabServer, tenant: Tenant, stage: Stage): Promise<Begun> {
  const interrupt = async <T>(moments: readonly Moment[], begin: (index: number) => Promise<T>) => {
    const begun: T[] = [];
    for (const [index, moment] of moments.entries()) {
      const held = stage.hold(moment);
      begun.push(await begin(index));
      await held.reached();
    }
    return begun;
  };
  const [kept] = await tenant.machines(1);
  // The second machine is on the host that has none yet.
  const [elsewhere = kept ?? ''] = await tenant.machines(stage.movesVolumes ? 1 : 0);
  const doomed = await tenant.machines(stage.deletes.length);
  const [attached, ...attaching] = await tenant.volumes(1 + stage.attaches.length);
  if (kept === undefined || attached === undefined) throw new Error('there is no machine or no volume');
  for (const volume of [...attaching, attached]) {
    await tenant.attach(volume, kept);
    await server.client.waitFor(volume, 'ATTACHED');
    await tenant.says(kept, `echo ${TEXT} | ${stage.write(volume)}; sync`);
    if (volume === attached) continue;
    await tenant.send('POST', `${volume}/detach`);
    await server.client.waitFor(volume, 'AVAILABLE');
  }
  const process = await tenant.says(kept, 'sleep 86400 >/dev/null 2>&1 & echo $!');
  const made = await interrupt(stage.creates, () => server.create(stage.machine));
  await interrupt(stage.attaches, (index) => tenant.attach(attaching[index] ?? '', elsewhere));
  await interrupt(stage.deletes, (index) => tenant.send('DELETE', doomed[index] ?? ''));
  return { kept, attached, process, made, doomed, attaching, elsewhere };
}

async function allEnd(server: LabServer, tenant: Tenant, stage: Stage, begun: Begun): Promise<void> {
  const { kept, attached, process, made, doomed, attaching, elsewhere } = begun;
  const matching = async (pattern: string): Promise<string[]> =>
    (await stage.contents()).filter((name) => new RegExp(pattern).test(name));
  const machinesOf = (path: string) => matching(`^(instance )?${nameOf(path)}(-g\\d+)?$`);
  const volumesOf = (path: string) => matching(`^(volume )?${nameOf(path)}(-g\\d+)?(\\.volume$| on )`);
  await Promise.all([
    ...made.map(async (path) => {
      await server.online(path);
      await expect.poll(() => machinesOf(path)).toHaveLength(1);
    }),
    ...doomed.map(async (path) => {
      await server.client.waitFor(path, 'GONE');
      await expect.poll(() => matching(nameOf(path))).toEqual([]);
    }),
    ...attaching.map(async (volume) => {
      await server.client.waitFor(volume, 'ATTACHED');
      await expect.poll(() => tenant.says(elsewhere, stage.read(volume))).toBe(TEXT);
      await expect.poll(() => volumesOf(volume)).toHaveLength(1);
    }),
  ]);
  expect(await tenant.says(kept, stage.read(attached))).toBe(TEXT);
  expect(await tenant.says(kept, `tr '\\0' ' ' </proc/${process}/cmdline`)).toBe('sleep 86400');
  // Under its first name.
  expect(await machinesOf(kept)).toEqual([
    expect.stringMatching(new RegExp(`^(instance )?${nameOf(kept)}$`)),
  ]);
}

type Tenant = ReturnType<typeof tenantOf>;

/** What a client of the server does. */
function tenantOf(server: LabServer, { machine, volume }: Stage) {
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
function watchStatus(server: LabServer, path: string): Disposable & { end: () => Promise<string[]> } {
  const found = new Set<string>();
  let isOver = false;
  const read = async (): Promise<string> => {
    const { status, body } = await server.client.request('GET', path);
    return String(status === 200 ? body['status'] : status);
  };
  const watching = (async () => {
    while (!isOver) {
      found.add(await read().catch(String));
      await sleep(PACE.everyMs);
    }
  })();
  return {
    async end() {
      isOver = true;
      await watching;
      return [...found];
    },
    [Symbol.dispose]() {
      isOver = true;
    },
  };
}
