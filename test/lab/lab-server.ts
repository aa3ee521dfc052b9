import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerLives } from '../support/processes/server-lives.ts';

/** Emulated guests take both cores, and who looks all the time takes them from these. */
const PACE = { everyMs: 250, withinMs: 540_000 };

/** `berth serve` on a real platform, a process of its own over many lives on one database. */
export class LabServer extends ServerLives {
  constructor(catalog: object, platform: object) {
    super((folder) => {
      writeFileSync(join(folder, 'catalog.yaml'), JSON.stringify(catalog));
      const config = {
        database: 'sqlite:berth.db',
        catalog: 'catalog.yaml',
        platform,
        reconcile: { watch_interval_s: 2, ssh_probe_interval_s: 0.5, lease_s: 30 },
        rate_limits: { enabled: false },
        log: { level: 'warn' },
      };
      const file = join(folder, 'berth.yaml');
      writeFileSync(file, JSON.stringify(config));
      return file;
    }, PACE);
  }

  async create(request: object): Promise<string> {
    const { status, body } = await this.client.request('POST', '/instances', { body: request });
    if (status !== 201) throw new Error(`the create was answered ${status}: ${JSON.stringify(body)}`);
    return `/instances/${body['id']}`;
  }

  async destroy(path: string): Promise<void> {
    await this.client.request('DELETE', path);
    await this.client.waitFor(path, 'GONE');
  }
}

/** The owner ref, and so the platform's name, of an instance or a volume. */
export function nameOf(path: string): string {
  return `berth-${path.split('/').at(-1)}`;
}
