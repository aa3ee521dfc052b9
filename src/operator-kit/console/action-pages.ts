import { z } from 'zod';
import { toIssues } from '../../contract/issue-words.ts';
import { Fatal } from '../../ports/errors.ts';
import { titleOf } from '../columns.ts';
import type { Actor } from '../model.ts';
import { type FormSpec, kindOf, type Operation } from '../operation.ts';
import { readText } from '../parse.ts';
import type { PageContent, PageRequest } from './deps.ts';
import { fieldOf } from './fields.ts';
import { csrfField } from './layout.ts';
import { cutName, given, type Html, html, withQuery } from './parts.ts';

type Fields = Readonly<Record<string, string | null | undefined>>;
type Read = (name: string) => string | undefined;

/**
 * Returns the path, below the console, of the page that shows what an action would do. The page's form is sent to the
 * same path.
 */
export function actionPath(name: string): string {
  return `/actions/${name}`;
}

/** Renders a link to the page that shows what the action would do. */
export function actionLink({ name }: { name: string }, text: string, fields: Fields): Html {
  const query = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, value ?? undefined]));
  return html`<a class="button" href="${withQuery(`/console${actionPath(name)}`, query)}">${text} …</a>`;
}

/** Renders a form whose button carries out the action. `content` precedes the button. */
export function actionForm(
  { name, form }: { name: string; form?: { button: string } | undefined },
  csrf: string,
  fields: Fields,
  {
    button = form?.button,
    className = '',
    buttonClass = '',
    content = '' as Html | string,
    after = '' as Html | string,
  } = {},
): Html {
  return html`<form class="${className}" method="post" action="/console${actionPath(name)}">${csrfField(csrf)}${Object.entries(
    fields,
  ).map(([field, value]) =>
    value === null || value === undefined ? '' : html`<input type="hidden" name="${field}" value="${value}">`,
  )}${content}<button class="${buttonClass}">${button}</button>${after}</form>`;
}

/** Renders what the action would do, and the button that carries it out. Null if the action has no such page. */
export async function actionPage<Deps>(
  action: Operation<Deps>,
  deps: Deps,
  { query, now, session }: PageRequest,
): Promise<PageContent | null> {
  const { form } = action;
  if (form === undefined || (action.dryRun ?? form.preview) === undefined) return null;
  const given = { ...readFields(action, form, query, now), ...form.dryRunWith };
  const input = parse(action, given);
  const reply = (await action.dryRun?.(deps, input)) as { effect: string } | undefined;
  const sentences = (await form.preview?.(reply, deps, input)) ?? [];
  const sent = form.send?.(reply) ?? textsOf(given);
  const title = cutName(form.title(input));
  const page = form.page(input);
  return { title, body: bodyOf(action, form, { title, sentences, reply, sent, csrf: session.csrf, page }) };
}

interface Shown {
  title: string;
  sentences: readonly string[];
  reply: { effect: string } | undefined;
  sent: Fields;
  csrf: string;
  page: string;
}

function bodyOf<Deps>(
  action: Operation<Deps>,
  { isDangerous, reason }: FormSpec<Deps>,
  { title, sentences, reply, sent, csrf, page }: Shown,
): Html {
  const asksReason = action.dryRun !== undefined && 'reason' in action.input;
  return html`<h1>${title}</h1>
<div class="notice ${isDangerous ? 'bad' : 'wait'}"><h2>What would happen</h2>${sentences.map(
    (sentence) => html`<p>${given(sentence)}</p>`,
  )}${reply === undefined ? '' : html`<p>Then ${reply.effect}.</p>`}<p class="label">This is a dry run: nothing has changed.</p></div>
${actionForm(action, csrf, asksReason ? { ...sent, reason: undefined } : sent, {
  className: 'card row',
  buttonClass: isDangerous ? 'danger' : 'primary',
  content: asksReason
    ? html`<label class="field grow"><span>Reason (${reason ?? 'for the audit log'})</span><input name="reason" value="${sent['reason'] ?? ''}" maxlength="200"></label>`
    : '',
  after: html`<a class="button" href="${page}">Cancel</a>`,
})}${otherPlans(action, sent)}`;
}

/** A form for each input with a choice, which shows the plan for another one. */
function otherPlans<Deps>({ name, input, dryRun }: Operation<Deps>, sent: Fields): Html[] {
  const choices = Object.entries(input).filter(
    ([, schema]) =>
      dryRun !== undefined && schema instanceof z.ZodDefault && schema.unwrap() instanceof z.ZodEnum,
  );
  return choices.map(([field, schema]) => {
    const others = Object.entries({ ...sent, [field]: undefined });
    return html`<form class="card row" action="/console${actionPath(name)}">${others.map(([other, value]) =>
      typeof value === 'string' ? html`<input type="hidden" name="${other}" value="${value}">` : '',
    )}${fieldOf(`${name}-${field}`, field, schema, sent[field] ?? undefined, [])}<button>Show this plan</button></form>`;
  });
}

/** Carries out the action of a form. Returns the path of the next page, and the secret to be shown before it. */
export async function performForm<Deps>(
  action: Operation<Deps>,
  deps: Deps,
  { actor, field, now }: { actor: Actor; field: Read; now: number },
): Promise<{ next: string; secret: string | undefined }> {
  const { form } = action;
  if (form === undefined) throw new Fatal('The console has no form for this action.');
  const input = parse(action, { ...readFields(action, form, field, now), dry_run: false });
  const reply = await action.perform(deps, actor, input);
  return { next: form.page(input), secret: form.secret?.(reply) };
}

function readFields<Deps>(
  { input }: Operation<Deps>,
  form: FormSpec<Deps>,
  field: Read,
  now: number,
): Record<string, unknown> {
  if (form.parse !== undefined) return form.parse(field, now);
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, schema]) => {
      const text = field(name);
      if (text === undefined) return [];
      const kind = kindOf(name, schema);
      return [
        [name, kind === 'switch' ? text === 'yes' : readText(kind, titleOf({ field: name }), text, now)],
      ];
    }),
  );
}

/** @throws {Fatal} if a field is missing or invalid */
function parse<Deps>({ input }: Operation<Deps>, values: Record<string, unknown>): Record<string, unknown> {
  const parsed = z.object(input).safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = toIssues({ error: parsed.error, data: values });
  throw new Fatal(`The form is incomplete or invalid: ${issue?.path}: ${issue?.message}.`);
}

function textsOf(values: Record<string, unknown>): Fields {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'boolean' ? (value ? 'yes' : undefined) : (value as string | undefined),
    ]),
  );
}
