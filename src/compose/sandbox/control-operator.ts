import type { Authentication } from '../../operator-kit/http/router.ts';
import { CONTROL, serverPath } from '../../sandbox/control/client.ts';

/** The operator of every server of a sandbox: the control API has checked its key. */
export const controlOperator: Authentication = {
  authenticate: async () => ({ id: 'control', name: 'sandbox', role: 'admin' }),
};

/** Where clients reach the operator API of a server of this name. */
export const operatorUrl = (name: string): string => `${CONTROL}${serverPath(name)}/operator/v1`;
