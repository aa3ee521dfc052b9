import { packageVersion } from '../../config/package-root.ts';
import type { Environment } from '../../config/settings.ts';
import { adminApp } from '../../http/api/operations.ts';
import { createConsole } from '../../orchestrator/console/app.ts';
import { createOperatorApp } from '../../orchestrator/http/operator/app.ts';
import { operatorDepsOf } from '../orchestrator/operator-deps.ts';
import { type Orchestrator, type OrchestratorDeps, startOrchestrator } from '../orchestrator/orchestrator.ts';

interface Admin {
  /** The admin listener's app. */
  admin: ReturnType<typeof adminApp>;
  /** The operator's API within it. */
  operator: ReturnType<typeof createOperatorApp>;
  /** The operator's pages within it. */
  console: ReturnType<typeof createConsole>['app'];
}

/** Starts an orchestrator with an admin listener. */
export async function startWithAdmin(
  deps: OrchestratorDeps & { env?: Environment; umask?: number | undefined },
): Promise<Orchestrator & Admin> {
  const { config, catalog, clock, log, drivers, env = {}, umask } = deps;
  const orchestrator = await startOrchestrator(deps);
  const { http, nextId, findProblem, platforms, server, operators } = orchestrator.adminParts;
  const { store } = deps;
  const common = operatorDepsOf(orchestrator, {
    config,
    catalog,
    clock,
    // The doctor's code is loaded on the first request.
    examine: async function* () {
      const { diagnose } = await import('../doctor/doctor.ts');
      yield* diagnose(config, { env, umask, clock, log, running: { store, drivers } });
    },
  });
  const operator = createOperatorApp({ ...common, operators }, { nextId });
  const console = createConsole({
    ...common,
    operators,
    states: platforms,
    version: packageVersion(),
    server,
  });
  const { host, hosts } = config.server.admin;
  const admin = adminApp(findProblem, http.metrics, {
    apps: { '/operator': operator, '/console': console.app },
    hosts: [host, ...hosts],
    log,
    trustedProxies: config.server.trusted_proxies,
  });
  admin.get('/', (context) => context.redirect('/console'));
  return {
    ...orchestrator,
    admin,
    operator,
    console: console.app,
    beginDrain: () => {
      orchestrator.beginDrain();
      console.close();
    },
    close: () => {
      console.close();
      return orchestrator.close();
    },
  };
}
