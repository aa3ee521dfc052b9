import { createOperatorApp } from '../../marketplace/http/operator/app.ts';
import { commands } from '../../marketplace/operate/commands.ts';
import { MARKETPLACE } from '../../sandbox/options.ts';
import type { Server } from '../../sandbox/provider.ts';
import type { Marketplace } from '../marketplace/marketplace.ts';
import { operatorDepsOf } from '../marketplace/operator-deps.ts';
import { controlOperator, operatorUrl } from './control-operator.ts';

/** Creates the operator API of the marketplace: that of production, and its commands. */
export function operateMarketplace({ operatorParts }: Marketplace): Server {
  const { nextId } = operatorParts;
  const deps = { ...operatorDepsOf(operatorParts), operators: controlOperator };
  return createOperatorApp(deps, {
    nextId,
    sandbox: { url: operatorUrl(MARKETPLACE), operations: commands },
  });
}
