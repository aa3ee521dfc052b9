import type { Config } from '../../config/schema.ts';
import type { Operation } from '../../operator-kit/operation.ts';
import { createOperatorApp } from '../../orchestrator/http/operator/app.ts';
import { commands } from '../../orchestrator/operate/commands.ts';
import type { Clock } from '../../ports/clock.ts';
import { ok } from '../../ports/diagnosis.ts';
import type { Server } from '../../sandbox/provider.ts';
import { operatorDepsOf } from '../orchestrator/operator-deps.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import { controlOperator, operatorUrl } from './control-operator.ts';
import type { LiveCatalog } from './live-catalog.ts';

interface Parts {
  /** Its name in the sandbox. */
  name: string;
  config: Config;
  sold: LiveCatalog;
  clock: Clock;
  /** Stops virtual time until the returned function is called. */
  hold(): () => void;
}

/** Creates the operator API of a provider: that of production, and its commands. */
export function operateProvider(
  orchestrator: Orchestrator,
  { name, config, sold, clock, hold }: Parts,
): Server {
  const deps = operatorDepsOf(orchestrator, { config, catalog: sold.value, clock, examine });
  const { nextId } = orchestrator.adminParts;
  const operations = commands.map((command) => held(command, hold));
  return createOperatorApp(
    { ...deps, operators: controlOperator },
    { nextId, sandbox: { url: operatorUrl(name), operations } },
  );
}

async function* examine() {
  yield ok('sandbox', 'it is in memory, and has no prerequisites');
}

/** A command that works without a timer, such as to hash a password: virtual time stands still meanwhile. */
function held<Deps>(command: Operation<Deps>, hold: () => () => void): Operation<Deps> {
  return {
    ...command,
    perform: async (...given) => {
      const release = hold();
      return command.perform(...given).finally(release);
    },
  };
}
