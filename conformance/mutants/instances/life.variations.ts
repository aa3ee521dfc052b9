import type { Variation } from '../mutant.ts';

/** Lawful variations in the life of an instance. */
export const lifeVariations: readonly Variation[] = [
  {
    id: 'forwarded-port-only',
    why: 'ssh_port is optional where port_forwards say it',
    behave: (rules) => ({
      ...rules,
      showInstance: (instance, { ssh_port: _, ...shown }, request) =>
        rules.showInstance(instance, shown, request),
    }),
  },
  {
    id: 'starts-like-a-boot',
    why: 'transitions other than those of the table are not shown',
    options: { startMs: 30_000 },
    behave: (rules, clock) => ({
      ...rules,
      takesEffect(instance, operation) {
        if (operation === 'start') instance.updatedAtMs = clock.wall();
        return rules.takesEffect(instance, operation);
      },
      statusShown: (instance) =>
        instance.isStarting && instance.status === 'STOPPED' ? 'PROVISIONING' : rules.statusShown(instance),
    }),
  },
  {
    id: 'never-stops',
    why: 'the row of the contract is for an instance that is stoppable',
    behave: (rules) => ({ ...rules, mayStop: () => false }),
  },
  {
    id: 'logins-print-a-greeting',
    why: 'what a login shell prints before a command belongs to the image',
    behave: (rules) => ({
      ...rules,
      greeting: ({ id }) => `Welcome to ${id}.\n3 updates can be applied.\n`,
    }),
  },
  {
    id: 'no-user-name',
    why: 'ssh_username is optional',
    behave: (rules) => ({
      ...rules,
      showInstance: (instance, { ssh_username: _, ...shown }, request) =>
        rules.showInstance(instance, shown, request),
    }),
  },
  {
    id: 'waits-for-the-stop',
    why: 'only a create is said to be answered immediately',
    behave: (rules) => ({
      ...rules,
      answerDelayMs: (request) =>
        /DELETE|stop$/.test(request.route ?? '') ? 45_000 : rules.answerDelayMs(request),
    }),
  },
  {
    id: 'mixed-precision',
    why: 'RFC 3339 has no fixed precision',
    behave: (rules) => ({
      ...rules,
      showInstance: (instance, shown, request) =>
        rules.showInstance(
          instance,
          request.route === 'POST /instances'
            ? { ...shown, created_at: String(shown['created_at']).replace('Z', '123+00:00') }
            : { ...shown, updated_at: String(shown['updated_at']).replace(/\.\d+/, '') },
          request,
        ),
    }),
  },
  {
    id: 'replica-lags-half-a-second',
    why: 'a change is observable within seconds',
    behave: (rules, clock) => {
      const before = new Map<string, Record<string, unknown>>();
      return {
        ...rules,
        showInstance(instance, shown, request) {
          const usual = rules.showInstance(instance, shown, request);
          if (request.route !== 'GET /instances/{instanceId}') return usual;
          const old = before.get(instance.id);
          if (old !== undefined && clock.wall() - instance.updatedAtMs < 500) return old;
          before.set(instance.id, usual);
          return usual;
        },
      };
    },
  },
  {
    id: 'list-lags-a-second-and-a-half',
    why: 'a change is observable within seconds',
    behave: (rules, clock) => ({
      ...rules,
      isListed: (instance) => clock.wall() - instance.createdAtMs >= 1500 && rules.isListed(instance),
    }),
  },
  {
    id: 'one-host-key-for-all',
    why: 'SSH may be behind a gateway that refuses the keys of what is gone',
    behave: (rules) => {
      let hostKey: string | undefined;
      return {
        ...rules,
        bootMs(instance) {
          hostKey ??= instance.disk.hostKey;
          instance.disk.hostKey = hostKey;
          return rules.bootMs(instance);
        },
        sshListens: (_instance, status) => status !== 'PROVISIONING',
        mayLogin: (instance, attempt) => instance.status === 'ONLINE' && rules.mayLogin(instance, attempt),
      };
    },
  },
  {
    id: 'spot-that-cannot-stop',
    why: 'the row of the contract is for an instance that is stoppable',
    run: { offer: 'cpu-spot' },
    behave: (rules) => ({ ...rules, mayStop: () => false }),
  },
  {
    id: 'one-read-in-forty-is-503',
    why: 'a doubt is 503, and never 404',
    warns: ['ERR-5XX-001'],
    behave: (rules) => {
      let count = 0;
      return {
        ...rules,
        answer: (request, answer) =>
          request.route === 'GET /instances/{instanceId}' && answer.status === 200 && ++count % 40 === 0
            ? {
                status: 503,
                headers: { 'content-type': 'application/json' },
                json: rules.errorBody('unavailable', 'Not now.', undefined),
              }
            : rules.answer(request, answer),
      };
    },
  },
  {
    id: 'boots-in-a-second',
    why: 'no transition has a least duration',
    options: { bootMs: 700, stopMs: 300, startMs: 600 },
  },
];
