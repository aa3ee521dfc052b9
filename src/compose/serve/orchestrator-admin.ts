import { packageVersion } from '../../config/package-root.ts';
import { adminApp } from '../../http/api/operations.ts';
import { createConsole } from '../../orchestrator/console/app.ts';
import { createOperatorApp } from '../../orchestrator/http/operator/app.ts';
import type { PlatformChecker } from '../../orchestrator/operate/views/platform-check.ts';
import { operatorDepsOf } from '../orchestrator/operator-deps.ts';
import { type Orchestrator, type OrchestratorDeps, startOrchestrator } from '../orchestrator/orchestrator.ts';

interface Admin {
  /** The admin listener's app. */
  admin: ReturnType<typeof adminApp>;
  /** The operator's API within it. */
  operator: ReturnType<typeof createOperatorApp>;
  /** The operator's pages within it. */
  console: ReturnType<typeof createConsole>;
}

/** Starts an orchestrator with an admin listener. `checks`: of its platforms; absent: they are not checked. */
export async function startWithAdmin(
  deps: OrchestratorDeps,
  checks?: PlatformChecker,
): Promise<Orchestrator & Admin> {
  const { config, log } = deps;
  const orchestrator = await startOrchestrator({ keepsFigures: true, ...deps });
  const { http, nextId, findProblem, platforms, server, operators } = orchestrator.adminParts;
  const common = { ...operatorDepsOf(orchestrator, config), checks };
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
    apps: { '/operator': operator, '/console': console },
    hosts: [host, ...hosts],
    log,
    trustedProxies: config.server.trusted_proxies,
  });
  admin.get('/', (context) => context.redirect('/console'));
  return {
    ...orchestrator,
    admin,
    operator,
    console,
  };
}
