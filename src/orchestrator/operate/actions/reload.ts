import { z } from 'zod';
import { audited } from '../../../operator-kit/audit.ts';
import type { Actor } from '../../../operator-kit/model.ts';
import { defineAction } from '../../../operator-kit/operation.ts';
import type { Clock } from '../../../ports/clock.ts';
import { Fatal } from '../../../ports/errors.ts';
import type { Log } from '../../../ports/log.ts';
import type { Alarms } from '../../alarms/alarms.ts';
import type { Store } from '../../model/store.ts';

const reloadedSchema = z
  .object({
    catalog: z.string().meta({ description: 'The file that was read.' }),
    added: z.array(z.string()),
    removed: z.array(z.string()),
    changed: z.array(z.string()),
    needs_restart: z
      .array(z.string())
      .meta({ description: 'Changed configuration keys that take effect only after a restart.' }),
  })
  .meta({ id: 'Reloaded' });
/** The changes of a reload, such as `offer h100-sxm-1x` and `region eu-frankfurt`. */
export type Reloaded = z.output<typeof reloadedSchema>;

interface ReloadDeps extends Pick<Deps, 'store' | 'clock'> {
  /** Reloads the catalog of this server, and writes the row of the audit log. @throws {Fatal} */
  reload: (actor: Actor) => Promise<Reloaded>;
}

export const reload = defineAction({
  name: 'reload',
  tag: 'Actions',
  path: '/reload',
  summary: 'Reload the catalog',
  description:
    'On this server now, on the others within seconds. A catalog with an error is refused as a whole.',
  errors: [],
  reply: ['What changed.', reloadedSchema],
  form: {
    title: () => 'Reload the catalog',
    button: 'Reload',
    page: () => '/console/cordons',
    beside: 'listCordons',
  },
  run: (deps: ReloadDeps, _input, actor) => deps.reload(actor),
});

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'info' | 'warn' | 'error'>;
  alarms: Pick<Alarms, 'raise' | 'end' | 'sync' | 'server'>;
  /** Reads the configuration and applies it. @throws {Fatal} with all errors; then nothing has changed */
  load: () => Reloaded;
}

const REFUSED =
  'the new configuration was refused: the previous one stays in use, and a restart would fail. ' +
  'Fix it, then run `berth reload`';

/** Requests every server on the database to reload its configuration. They do so within some seconds. */
export async function requestReload(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  actor: Actor,
): Promise<void> {
  await audited({ store, clock }, actor, { action: 'configuration.reload' }, (inside) =>
    inside.transact((tx) => tx.marks.put('reload_requested_at', clock.now())),
  );
}

/** Reloads the configuration of this server on a request to this or another server. */
export class Reloader {
  readonly #deps: Deps;
  #seen: number | null = null;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Ignores requests that predate this process: it has read its configuration since. */
  async begin(): Promise<void> {
    this.#seen = await this.#requestedAt();
  }

  /**
   * Reloads now, and requests the same of the other servers. @throws {Fatal} if this server refuses the configuration
   */
  async reload(actor: Actor): Promise<Reloaded> {
    const { store, clock } = this.#deps;
    const action = { action: 'configuration.reload' };
    let reloaded: Reloaded;
    try {
      reloaded = this.#load();
    } catch (error) {
      return audited({ store, clock }, actor, action, () => Promise.reject(error));
    }
    const requestedAt = clock.now();
    await audited({ store, clock }, actor, { ...action, detail: { ...reloaded } }, (inside) =>
      inside.transact((tx) => tx.marks.put('reload_requested_at', requestedAt)),
    );
    this.#seen = requestedAt;
    return reloaded;
  }

  /** Reloads if that was requested since the last reload. Does not reject for a faulty configuration. */
  async poll(): Promise<void> {
    const requestedAt = await this.#requestedAt();
    if (requestedAt === null || requestedAt === this.#seen) return;
    this.#seen = requestedAt;
    try {
      this.#load();
    } catch (error) {
      if (!(error instanceof Fatal)) throw error;
    }
  }

  #load(): Reloaded {
    const { log, alarms, load } = this.#deps;
    const alarm = { kind: 'reload_refused', subject: alarms.server } as const;
    try {
      const reloaded = load();
      alarms.end(alarm);
      log.info({ ...reloaded }, 'the catalog was reloaded');
      if (reloaded.needs_restart.length > 0)
        log.warn({ keys: reloaded.needs_restart }, 'the configuration has changes that need a restart');
      return reloaded;
    } catch (error) {
      const detail = (error instanceof Error ? error.message : String(error)).replaceAll('\n', '; ');
      // Each refusal is logged, since its cause may differ from the last one.
      log.error({ problem: detail }, REFUSED);
      alarms.raise({ ...alarm, platform: null, text: REFUSED, detail }, { error: () => undefined });
      void alarms.sync();
      throw error;
    }
  }

  #requestedAt(): Promise<number | null> {
    return this.#deps.store.read.marks.get('reload_requested_at');
  }
}
