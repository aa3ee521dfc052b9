import type { Config } from '../../config/schema.ts';
import { createOperatorApp } from '../../orchestrator/http/operator/app.ts';
import { commands } from '../../orchestrator/operate/operations.ts';
import type { SandboxClock } from '../../sandbox/clock.ts';
import type { Server } from '../../sandbox/provider.ts';
import { operatorDepsOf } from '../orchestrator/operator-deps.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import { controlOperator, operatorUrl } from './control-operator.ts';

interface Parts {
  /** Its name in the sandbox. */
  name: string;
  config: Config;
  clock: SandboxClock;
}

/** Creates the operator API of a provider: that of production, and its commands. */
export function operateProvider(orchestrator: Orchestrator, { name, config, clock }: Parts): Server {
  const deps = operatorDepsOf(orchestrator, config);
  const { nextId } = orchestrator.adminParts;
  // Commands work without a timer, such as to hash a password.
  const operations = commands.map((command) => ({
    ...command,
    perform: async (...given: Parameters<typeof command.perform>) =>
      clock.held(async () => command.perform(...given)),
  }));
  return createOperatorApp(
    { ...deps, operators: controlOperator },
    { nextId, sandbox: { url: operatorUrl(name), operations } },
  );
}
