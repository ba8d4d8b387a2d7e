/**
 * The types of the service, made by openapi-typescript from its description. After a change of the API:
 * `npx vitest run --update --project acceptance test/clients/schema.test.ts`
 */

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What this is, and where to begin */
        get: operations["getServiceIndex"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The queues, as a page to look at */
        get: operations["showQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who did what
         * @description In the order of the chain, or from its end with `order=newest`. An entry is there with what it tells; its `hash` is null until it is chained, within a second, and until then its `seq` may change. `hash` is the hexadecimal SHA-256 of the hash before (64 zeros at first), a line feed, and the other members as JSON in this order. Refused logins are told once a minute for an account and an address; of too many, one entry a minute without `user` and `address` tells. A password of Basic that is right is told, as `login`, when it first comes from an address to an API process. The target of a command is the SHA-256 of its text, that of a file of a host the SHA-256 of its path; that of a session is its id and ACCOUNT@HOST, and that of a worker its id and `drain` or `resume`. `user.promote` and `user.demote` tell who becomes an administrator and is one no more; `user.update` is an older word for every change of rights: with `action=user.update` come `user.promote`, `user.demote`, `user.disable` and `user.enable` too.
         */
        get: operations["listAuditEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/bookmarks/{bid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a bookmark */
        get: operations["getBookmark"];
        put?: never;
        post?: never;
        /** Remove a bookmark */
        delete: operations["removeBookmark"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/configuration/markings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the markings that clients offer for models
         * @description MARKINGS sets them. A model takes any other text too.
         */
        get: operations["listMarkings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/configuration/parsers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the parsers of uploads, with their parameters */
        get: operations["listParsers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/configuration/remote-hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the hosts that you may open sessions on, as clients of Slycat read it
         * @description By name, the first 10000; GET /hosts has them in pages.
         */
        get: operations["listRemoteHosts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/configuration/support-email": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Where to ask for help
         * @description SUPPORT_EMAIL sets the address, which is null where there is none.
         */
        get: operations["getSupportEmail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/configuration/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which release this is */
        get: operations["getVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description, as a page for people */
        get: operations["showDocumentation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/events/{event}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Record what a user did: one line in the log of the service
         * @description The path behind /events/ and the query mean what the client likes, and need not even decode. A body is not read, and may have 16 MiB at most (LIMIT_VALUE_BYTES).
         */
        post: operations["recordEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the hosts that you can open sessions on
         * @description Server administrators see all.
         */
        get: operations["listHosts"];
        put?: never;
        /** Add a host, with its keys or trusting what it shows now */
        post: operations["addHost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/hosts/-/scan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * See which keys a machine shows, before a host is added with them
         * @description A worker connects to it once. Nothing is kept.
         */
        post: operations["scanHost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/hosts/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at a host */
        get: operations["getHost"];
        /**
         * Change a host
         * @description Another address, port, key or jump host ends the sessions that are open on it, and on the hosts that are reached through it: host_changed. A list of `users` ends the sessions on it of those that it leaves out, and cancels their jobs.
         */
        put: operations["changeHost"];
        post?: never;
        /** Remove a host that no session is open on, and none is reached through */
        delete: operations["removeHost"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your jobs, the latest first
         * @description A page looks through 10,000 jobs at most: where few match, or many are large, it is shorter than `limit`, and `next` goes on. What a job of each kind does: connect: Logs in to the host and opens the session, up to what the host asks its user. answer: Goes on with a login, by what the user has answered. scan-host: Connects to a new host without logging in, to learn its keys. command: Runs a command on the host. batch: Submits a job to the host's batch system, and follows it. video: Makes a video of frames on the host. browse: Lists a directory on the host. file: Reads a file on the host, or a range of it. write-file: Writes a file on the host. remove-file: Removes a file on the host. copy: Copies a file on the host into a part of an upload. parse: Parses a finished upload into artifacts of its model. view: Sorts, filters or groups a table into a view of it.
         */
        get: operations["listJobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at a job, or wait until it has changed */
        get: operations["getJob"];
        put?: never;
        post?: never;
        /** Cancel a job */
        delete: operations["cancelJob"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/command": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * See all of the command that a job runs, and how
         * @description Of commands and batch jobs.
         */
        get: operations["fetchJobCommand"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow a job: its state, progress and output as they come
         * @description Server-sent events, each a `JobEvent`: `state` {state, error?}, the present one first unless the job has ended; `progress` {progress, message?}; `output` {stream, offset, time, text | base64}. After all output come the end state and `end`; the id of `end`, sent as Last-Event-ID, is answered 204, which stops an EventSource.
         */
        get: operations["followJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** See what happened to a job, and on which workers */
        get: operations["fetchJobHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/output": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Fetch the output of a command, or a range of it */
        get: operations["fetchJobOutput"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/output/times": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * See when the output of a command came
         * @description Of each second in which output was stored: the time, and the offset of the first byte. What 0.1.0 stored is left out.
         */
        get: operations["fetchJobOutputTimes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/record": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a job that has ended, with its output
         * @description What it made for a project stays: artifacts and how they were parsed, and videos in a cache. A job that nobody removes goes by itself after JOB_RETENTION_DAYS.
         */
        delete: operations["removeJob"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Fetch the result of a job in bytes, such as a video */
        get: operations["fetchJobResult"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Do a job once more
         * @description A command, batch job or video, while its session is open; a parse that did not succeed, while the parts of its upload are kept: the upload is then parsed by the new job.
         */
        post: operations["retryJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a link to GET one path without other credentials
         * @description For `<video>`, EventSource and downloads. Whoever has the link may GET and HEAD that path, with its query and further parameters, as you may at that moment: until it expires, or your password is changed, or the token that made it ends. A link never writes. A `read` token makes links to what it may read.
         */
        post: operations["makeLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log in, for browsers
         * @description Sets two cookies: `serviceauth` (HttpOnly) and `servicetimeout`, the moment the login ends (ISO 8601, UTC, as it is). Use makes it last longer, for 7 days at most. A changed password ends it. Instead of `username`, `user_name` may be given: then it and `password` are in base64, as clients of Slycat send them.
         */
        post: operations["beginLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/login/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Log in at the identity provider, for browsers
         * @description The provider sends the browser back to the callback, which sets the cookies of a login and goes on to `target`, where that is a path on this origin. The login ends after LOGIN_TIMEOUT, however much it is used: then the provider is asked again.
         */
        get: operations["beginProviderLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/login/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where the identity provider sends a browser back to */
        get: operations["finishProviderLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Log out: end the login of the cookie */
        delete: operations["endLogin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look at a model, its artifacts and its parses
         * @description Artifacts are sorted by name and come in pages; of the parses, the newest 200, or fewer where they name very much.
         */
        get: operations["getModel"];
        /** Change a model */
        put: operations["changeModel"];
        post?: never;
        /** Delete a model with all that it holds */
        delete: operations["deleteModel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/arrays/{aid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a slice of an array
         * @description At most 1,000,000 values that lie within 64 MiB. A dimension with an index is not in the shape; a range may go beyond the end, as in NumPy. NaN and the infinities are texts, and so are the integers of an array that is `exact`.
         */
        get: operations["readArray"];
        put?: never;
        post?: never;
        /** Remove an array artifact */
        delete: operations["removeArray"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/arrays/{aid}/data": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve an array as a NumPy file */
        get: operations["fetchArrayFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/arrays/{aid}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at the shape of an array */
        get: operations["getArray"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/files/{aid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a file artifact */
        get: operations["fetchArtifactFile"];
        put?: never;
        post?: never;
        /** Remove a file artifact */
        delete: operations["removeArtifactFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/parameters/{aid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look at a parameter: its bare value
         * @description Byte for byte as it was sent, less white space around it.
         */
        get: operations["getParameter"];
        /**
         * Store a parameter
         * @description Its value is kept byte for byte. At most 16 MiB (LIMIT_VALUE_BYTES), nested at most 100 deep (LIMIT_JSON_DEPTH); a member of the body that is given twice is refused.
         */
        put: operations["storeParameter"];
        post?: never;
        /** Remove a parameter */
        delete: operations["removeParameter"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a table artifact
         * @description With the sorted and filtered views of it.
         */
        delete: operations["removeTable"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}/data": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a table as Parquet
         * @description All of it, or the rows of a view, in its order. The first request of a view waits for the job that makes it, as one of its rows does.
         */
        get: operations["fetchTableFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}/groupby": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Group the rows of a table
         * @description A row for each combination of values in the columns of `by`, at most 10000, sorted by them with missing values last; by default with the number of its rows. Aggregates leave missing values out, and `min` and `max` NaN too. A sum of integers is exact, and a text where it passes 2^53. The first request waits for the job that makes it, as one of sorted rows does.
         */
        get: operations["groupRows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}/histogram": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the values of a column
         * @description Bins of equal width between the least and the greatest value, for numbers and times; each finite value is counted in the bin that begins with or below it, and `others` counts NaN and the infinities. For texts the 20 commonest values, cut at 200 characters, or without a filter at fewer where the table has more than 1,000 columns; `cut` marks those. With `filter`, of the rows that pass all, in the bins of the whole table; the first request waits for the job that finds them, as one of rows does.
         */
        get: operations["countValues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look at a table's columns
         * @description The least and greatest text of a column are cut at 200 characters, and at fewer in a table of more than 1,000 columns.
         */
        get: operations["getTable"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}/rows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read rows of a table
         * @description By `Accept` as JSON (at most 10,000 rows), as CSV (RFC 4180) or as a stream of Apache Arrow (at most 1,000,000 rows); an answer of these that ends early is cut, so check that it is whole. In the order of the file, or of `sort`, where equal rows keep that of the file and missing values come last. Who reads page after page sends the ETag of the first one as `If-Match`: 412 once another table has taken its place. Integers are exact; in a column that is `exact` they are texts, since JSON numbers beyond 2^53 are rounded by most clients; dates and times are ISO 8601; NaN and the infinities are texts. The first request of a sorted or filtered view waits for the job that makes it, as a launch does; a missing value passes no filter but `null`.
         */
        get: operations["readRows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{mid}/tables/{aid}/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the least and greatest value of a column along another
         * @description So that a plot of any number of rows is true at any zoom: `points` buckets of equal width of x, each with `from` and without `to`, and in each the least, the greatest and the number of the values of y; a bucket without any has count 0, and null. Rows where either is missing, NaN or infinite count nowhere. Edges between days or microseconds, or between integers that are texts, are rounded up to the next one, which changes no bucket. A column of one value has one bucket, and there is none where a column has no value. With `filter`, of the rows that pass all; the first request waits for the job that finds them, as one of rows does.
         */
        get: operations["readSeries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description */
        get: operations["getDescription"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the projects that you have a part in
         * @description A page has fewer than `limit` where their descriptions are long; `next` leads on.
         */
        get: operations["listProjects"];
        put?: never;
        /**
         * Make a project
         * @description Its creator is one of its administrators.
         */
        post: operations["createProject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects/{pid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at a project */
        get: operations["getProject"];
        /**
         * Change a project
         * @description Writers may change name and description, administrators the access list too. A list that is left out stays.
         */
        put: operations["changeProject"];
        post?: never;
        /** Delete a project with all that it holds */
        delete: operations["deleteProject"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects/{pid}/bookmarks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the bookmarks of a project
         * @description By their digests, in no order of time. `after` is a digest.
         */
        get: operations["listBookmarks"];
        put?: never;
        /**
         * Store a bookmark: any JSON object
         * @description The same bytes in the same project give the same id. At most 16 MiB (LIMIT_VALUE_BYTES), nested at most 100 deep (LIMIT_JSON_DEPTH).
         */
        post: operations["storeBookmark"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects/{pid}/cache": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List what is in the cache of a project */
        get: operations["listCache"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects/{pid}/cache/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a cached object */
        get: operations["fetchCacheEntry"];
        put?: never;
        post?: never;
        /** Remove an object from the cache of a project */
        delete: operations["removeCacheEntry"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects/{pid}/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the models of a project
         * @description A page has fewer than `limit` where their texts are long; `next` leads on.
         */
        get: operations["listModels"];
        put?: never;
        /**
         * Make a model in a project
         * @description `model-type` is any name: what it means is the client's own.
         */
        post: operations["createModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects_list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all projects that you have a part in, as clients of Slycat read it
         * @description The newest first. GET /projects has them in pages.
         */
        get: operations["listAllProjects"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your remote sessions */
        get: operations["listSessions"];
        put?: never;
        /**
         * Open a remote session
         * @description Logs in to the host; the credential is kept sealed and is never given out. Where the host asks for more, such as a one-time code, its questions are the answer.
         */
        post: operations["openSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/launch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command on the host of a session
         * @description Answers when the command has ended, whatever its exit status; `output` and `errors` hold up to 10 MiB each, the whole is at the job.
         */
        post: operations["launchCommand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at a remote session */
        get: operations["getSession"];
        put?: never;
        post?: never;
        /**
         * End a remote session
         * @deprecated
         * @description Its jobs are cancelled.
         */
        delete: operations["endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/answers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answer what the host of a session asks at its login
         * @description One answer for each prompt. They are sealed for the worker, and sent to the host once.
         */
        post: operations["answerLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit a job to the batch system of a session's host
         * @description It is submitted once, whatever fails meanwhile. The record is `queued` while the job waits there, and its `batch` holds what the batch system says; both streams can be followed while it runs.
         */
        post: operations["submitBatchJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/browse/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List a directory on the host
         * @description In the order the host has them, streamed; `types` are `d` for directories, `f` for the rest.
         */
        post: operations["listDirectory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/file/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Fetch a file of the host, or a range of it */
        get: operations["fetchFile"];
        /**
         * Write a file on the host
         * @description The bytes are stored here, then written beside the file and renamed: it is there whole, or as before. Of `Content-Digest` sha-256 is verified. A link is followed.
         */
        put: operations["writeFile"];
        post?: never;
        /**
         * Remove a file on the host
         * @description Of a link the link.
         */
        delete: operations["removeFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log in again for a session whose connection is lost
         * @description For a session whose host asks its user for more than a password or a key: its state is `reconnect`.
         */
        post: operations["repeatLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/videos": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start making a video of frames on the host */
        post: operations["makeVideo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/videos/{vsid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a video
         * @description With `cache=project`, `project` and `key` it is stored in that project's cache too, before the first byte is sent.
         */
        get: operations["fetchVideo"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/videos/{vsid}/poster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve the first picture of a video */
        get: operations["fetchVideoPoster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/videos/{vsid}/sprite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve small pictures of a video, side by side */
        get: operations["fetchVideoSprite"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/videos/{vsid}/sprite.vtt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve when each of the small pictures is shown, as WebVTT
         * @description Its cues are `sprite#xywh=…`: where a picture lies in the sprite beside it.
         */
        get: operations["fetchVideoSpriteCues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/remotes/{sid}/videos/{vsid}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look how a video is getting on, or wait until that has changed */
        get: operations["getVideoStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the settings that are in force
         * @description As the API that answers was started. Of a secret only whether it is set.
         */
        get: operations["listSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How jobs fared over time, by kind
         * @description Counted once a minute by the workers, up to a minute or two ago. A step without jobs of a kind is left out. Medians and 95th percentiles are bounds of a histogram (1, 2, 5, 10, …): no longer than so.
         */
        get: operations["fetchStatistics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin an upload by tus
         * @description `Upload-Metadata` has `mid`, `parser`, `aid` (the name of the artifact), `input` (false by default) and the parameters of the parser, as texts or as texts of JSON; what clients say of a file by themselves (`filename`, `filetype`, `name`, `type`, `relativePath`) is passed over. The body may have the first bytes; of a request that is refused or cut nothing stays.
         */
        post: operations["beginTusUpload"];
        delete?: never;
        /** Ask what of tus is supported */
        options: operations["describeTus"];
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tus/{uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Give an upload by tus up */
        delete: operations["abandonTusUpload"];
        options?: never;
        /** Ask from which offset an upload goes on */
        head: operations["getTusOffset"];
        /**
         * Append bytes to an upload
         * @description From `Upload-Offset` on, which must be where the upload ends. What comes of a body that is cut is kept, unless `Upload-Checksum` was given. With the last byte parsing begins. Where a proxy lets no PATCH through, POST with `X-HTTP-Method-Override: PATCH` is the same.
         */
        patch: operations["appendTusBytes"];
        trace?: never;
    };
    "/api/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your upload sessions */
        get: operations["listUploads"];
        put?: never;
        /**
         * Begin an upload into a model
         * @description `aids` names the artifacts, one a file, at most 1000; a parser that makes several of one file adds /name.
         */
        post: operations["beginUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at an upload: what has arrived, and what became of it */
        get: operations["getUpload"];
        put?: never;
        post?: never;
        /**
         * Give an upload up
         * @description Its parts are removed and its copies cancelled.
         */
        delete: operations["abandonUpload"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{uid}/files/{fid}/parts/{part}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Send a part of a file
         * @description The bytes as they are, or a form with `file` (urlencoded: in base64); in any order and many at once, the same part again replaces it. Or `sid` and `path`: the server copies that remote file itself, as a job. `fid` is below 1000, `part` below 100000, and an upload has at most 100000 parts of at most 5 GiB (LIMIT_PART_BYTES). Of `Content-Digest` sha-256 is verified, other algorithms are passed over.
         */
        put: operations["sendPart"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{uid}/finished": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say that all parts were sent, so that parsing begins
         * @description Where the counts differ from what has arrived: 400 with `missing` and `excess`, lists of [fid, pid] of at most 10000 entries each (`truncated` where there are more). Parsing does not begin then. With the ETag of the upload as `If-Match` it begins only where no part has been stored since.
         */
        post: operations["finishUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the users */
        get: operations["listUsers"];
        put?: never;
        /** Add a user */
        post: operations["addUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/-": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who am I
         * @description `administrator` is what these credentials may, which can be less than their user may.
         */
        get: operations["getCurrentUser"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/-/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your API tokens */
        get: operations["listTokens"];
        put?: never;
        /**
         * Make an API token for a program
         * @description A `read` token may only GET and HEAD, caches nothing and reaches no host. No token makes another.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/-/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete an API token: it is refused at once */
        delete: operations["deleteToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{username}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at a user */
        get: operations["getUser"];
        /**
         * Change a user's password or rights, or disable the user
         * @description Everyone may change their own password, with the one until now as `current`: logins by cookie end, API tokens live on. An administrator's reset of another's password and `disabled: true` end that user's logins, tokens, webhooks and remote sessions.
         */
        put: operations["changeUser"];
        post?: never;
        /**
         * Remove a user, with their logins, tokens and sessions, and the projects that nobody else is in
         * @description Those are deleted with all that they hold, and those that the user administers and others may only read are left to their readers, unless `projectsTo` names who gets both. GET tells their number, `soleProjects`.
         */
        delete: operations["removeUser"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{username}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List a user's API tokens */
        get: operations["listUserTokens"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{username}/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete a user's API token: it is refused at once */
        delete: operations["deleteUserToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your webhooks */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Have the ends of your jobs sent to a URL
         * @description Each end of one of your jobs is sent as Standard Webhooks (https://www.standardwebhooks.com), with the type `job.succeeded`, `job.failed` or `job.cancelled` and the record of the job: at least once, again and again for 3 days where it is not answered 2xx within 15 s. Then the webhook is disabled. Redirects are not followed. An address must be none of the inside of the network, unless WEBHOOK_PRIVATE allows that. No token makes one.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look at a webhook, and whether its receiver takes what it is sent */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /** Delete a webhook: it is sent nothing any more */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what was sent to a webhook, and what is to be sent, the latest job first
         * @description Kept for 30 days after the end of the job.
         */
        get: operations["listWebhookDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the workers that are alive */
        get: operations["listWorkers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Have a worker take no more jobs, or take them again
         * @description It finishes what it has. A worker that starts again is a new one.
         */
        put: operations["changeWorker"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether this process answers
         * @description Nothing else is asked.
         */
        get: operations["checkHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Numbers for Prometheus */
        get: operations["collectMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the service can serve, and what is unreachable
         * @description Ready: what requests need answers. `degraded` names what works in part, such as work that no worker does.
         */
        get: operations["checkReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @example {
         *       "missing": [],
         *       "job": "01KB4T7F9A6D2E4G8H0J3K5M7P"
         *     }
         */
        AcceptedUpload: {
            /** @description [fid, pid] of each part. */
            missing: number[][];
            job: string;
        };
        AccessList: {
            administrators: components["schemas"]["Member"][];
            writers: components["schemas"]["Member"][];
            readers: components["schemas"]["Member"][];
        };
        AccessListChanges: {
            administrators?: components["schemas"]["Member"][];
            writers?: components["schemas"]["Member"][];
            readers?: components["schemas"]["Member"][];
        };
        /**
         * @example {
         *       "projects": [
         *         {
         *           "_id": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *           "name": "Weather",
         *           "description": "",
         *           "role": "administrator",
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "updated": "2026-11-20T09:30:04.250Z"
         *         }
         *       ]
         *     }
         */
        AllProjects: {
            projects: components["schemas"]["ListedProject"][];
        };
        /**
         * @example {
         *       "shape": [
         *         365,
         *         180,
         *         360
         *       ],
         *       "type": "number",
         *       "min": -61.2,
         *       "max": 48.9,
         *       "unit": "°C"
         *     }
         */
        ArrayMetadata: {
            /** @description The length of each dimension. */
            shape: number[];
            /** @enum {string} */
            type: "boolean" | "integer" | "number";
            min: string | number | boolean | null;
            max: string | number | boolean | null;
            /** @description As the file names it. */
            unit?: string;
            /**
             * @description Integers pass 2^53: values, `min` and `max` are texts.
             * @constant
             */
            exact?: true;
        };
        /**
         * @example {
         *       "shape": [
         *         3
         *       ],
         *       "values": [
         *         11.8,
         *         12,
         *         "NaN"
         *       ]
         *     }
         */
        ArraySlice: {
            /** @description The length of each dimension. */
            shape: number[];
            /** @description In C order: the last index changes fastest. */
            values: (string | number | boolean | null)[];
        };
        Artifact: {
            aid: string;
            /** @enum {string} */
            type: "parameter" | "file" | "table" | "array";
            input: boolean;
            size: number;
            /** Format: date-time */
            updated: string;
        };
        AuditEntry: {
            seq: number;
            /** Format: date-time */
            time: string;
            user: string | null;
            address: string | null;
            /** @enum {string} */
            action: "login" | "logout" | "password" | "token.create" | "token.delete" | "user.create" | "user.update" | "user.promote" | "user.demote" | "user.disable" | "user.enable" | "user.delete" | "host.create" | "host.update" | "host.delete" | "session.open" | "session.close" | "command" | "file.write" | "file.remove" | "job.cancel" | "job.remove" | "link" | "webhook.create" | "webhook.delete" | "project.acl" | "project.delete" | "worker" | "restore" | "backup" | "keys.rotate" | "retention.remove";
            target: string | null;
            /** @enum {string} */
            outcome: "ok" | "refused";
            requestId: string | null;
            hash: string | null;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "seq": 17,
         *           "time": "2026-11-20T09:30:00.000Z",
         *           "user": "ada",
         *           "address": "192.0.2.7",
         *           "action": "login",
         *           "target": null,
         *           "outcome": "ok",
         *           "requestId": "4f6d1c1e-8f0b-4a53-9d57-0c7cf7a4a2c9",
         *           "hash": null
         *         }
         *       ],
         *       "next": null
         *     }
         */
        AuditPage: {
            items: components["schemas"]["AuditEntry"][];
            next: string | null;
        };
        BatchJob: {
            engine: string;
            id: string | null;
            state: string | null;
            reason: string | null;
            nodes: string | null;
        };
        BatchResources: {
            nodes?: number;
            tasks?: number;
            cpus?: number;
            memory?: number;
            time?: number;
            queue?: string;
            account?: string;
            options?: string[];
        };
        BookmarkEntry: {
            id: string;
            /** @description SHA-256 of its bytes, in hexadecimal digits. */
            digest: string;
            size: number;
            /** Format: date-time */
            created: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4TC9E3H5J7K9M1N3P5Q7R9",
         *           "digest": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
         *           "size": 32,
         *           "created": "2026-11-20T09:30:00.000Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        BookmarkPage: {
            items: components["schemas"]["BookmarkEntry"][];
            next: string | null;
        };
        /**
         * @description Any JSON object, kept byte for byte.
         * @example {
         *       "view": "plot",
         *       "zoom": [
         *         0,
         *         3600
         *       ]
         *     }
         */
        BookmarkState: {
            [key: string]: unknown;
        };
        CacheEntry: {
            key: string;
            type: string;
            size: number;
            /** @description Of the video; null where it is not known. */
            frames: number | null;
            /** Format: date-time */
            created: string;
            /**
             * Format: date-time
             * @description When it was last read, to the minute.
             */
            used: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "key": "runs/7.mp4",
         *           "type": "video/mp4",
         *           "size": 1234567,
         *           "frames": 250,
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "used": "2026-11-20T09:30:04.250Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        CachePage: {
            items: components["schemas"]["CacheEntry"][];
            next: string | null;
        };
        CacheUse: {
            bytes: number;
            /** @description LIMIT_CACHE_BYTES: beyond it what was not used for longest is removed. 0: no limit. */
            limit: number;
            /** @description When the entry that is removed first was last used; null where there is none. */
            oldest: string | null;
        };
        /**
         * @example {
         *       "id": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *       "name": "Weather",
         *       "description": "",
         *       "role": "administrator",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "updated": "2026-11-20T09:30:04.250Z",
         *       "acl": {
         *         "administrators": [
         *           {
         *             "user": "ada"
         *           }
         *         ],
         *         "writers": [
         *           {
         *             "user": "grace"
         *           }
         *         ],
         *         "readers": []
         *       },
         *       "cache": {
         *         "bytes": 1234567,
         *         "limit": 0,
         *         "oldest": "2026-11-20T09:30:04.250Z"
         *       }
         *     }
         */
        ChangedProject: {
            id: string;
            name: string;
            description: string;
            /** @description After the change; null where you took your own part in the project away. */
            role: ("administrator" | "writer" | "reader") | null;
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            updated: string;
            acl: components["schemas"]["AccessList"];
            cache: components["schemas"]["CacheUse"];
        };
        Column: {
            name: string;
            /** @enum {string} */
            type: "text" | "integer" | "number" | "boolean" | "date" | "time" | "timestamp";
            min: string | number | boolean | null;
            max: string | number | boolean | null;
            nulls: number;
            /** @description As the file names it. */
            unit?: string;
            /** @description Why the column of a CSV file is text: a few values are of no other type. */
            nearly?: components["schemas"]["OddValues"];
            /**
             * @description Integers pass 2^53: values, `min`, `max` and bins are texts.
             * @constant
             */
            exact?: true;
        };
        /**
         * @example {
         *       "command": "uname -a",
         *       "output": "Linux lab 6.12.0 #1 SMP x86_64 GNU/Linux\n",
         *       "errors": "",
         *       "returncode": 0,
         *       "job": "01KB4T7F9A6D2E4G8H0J3K5M7P"
         *     }
         */
        Command: {
            command: string;
            output: string;
            errors: string;
            returncode: number;
            job: string;
            /** @constant */
            truncated?: true;
        };
        /**
         * @example {
         *       "username": "ada",
         *       "password": "a long password",
         *       "target": "/"
         *     }
         */
        Credentials: {
            username: string;
            password: string;
            target?: string;
        };
        /** @description What a CSV file is like, as found or asked for. */
        CsvDialect: {
            /** @enum {string} */
            encoding: "utf-8" | "utf-16" | "latin-1" | "windows-1252";
            delimiter: string;
            quote: string;
            /** @enum {string} */
            decimal: "." | ",";
            /** @description Whether the first row is the names of the columns. */
            header: boolean;
            /**
             * @description There are only texts: the first row is taken for names by its look. Upload with `header: false` if it is data.
             * @constant
             */
            headerGuessed?: true;
            /** @enum {string} */
            lineBreak: "LF" | "CRLF" | "CR" | "mixed";
            comment: string | null;
            /** @description Lines before the first row. */
            skip: number;
            units: boolean;
            nulls: string[];
        };
        /**
         * @example {
         *       "path": "/home/ada/frames",
         *       "names": [
         *         "001.png",
         *         "old"
         *       ],
         *       "sizes": [
         *         18311,
         *         4096
         *       ],
         *       "types": [
         *         "f",
         *         "d"
         *       ],
         *       "mtimes": [
         *         "2026-11-20T09:30:00.000Z",
         *         "2026-11-20T09:30:00.000Z"
         *       ]
         *     }
         */
        DirectoryListing: {
            path: string;
            names: string[];
            sizes: number[];
            types: ("f" | "d")[];
            mtimes: string[];
        };
        /**
         * @example {
         *       "median": 0.05,
         *       "p95": 0.2,
         *       "longest": 0.31
         *     }
         */
        DurationSpread: {
            median: number;
            p95: number;
            longest: number;
        };
        /**
         * @description What a server administrator sees of the jobs of others.
         * @example {
         *       "id": "01KB4T7F9A6D2E4G8H0J3K5M7P",
         *       "kind": "command",
         *       "state": "succeeded",
         *       "progress": null,
         *       "host": "lab",
         *       "owner": "ada",
         *       "worker": "worker-1",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "started": "2026-11-20T09:30:00.000Z",
         *       "finished": "2026-11-20T09:30:04.250Z",
         *       "error": null
         *     }
         */
        ForeignJob: {
            id: string;
            kind: string;
            /** @enum {string} */
            state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
            progress: number | null;
            host: string | null;
            owner: string;
            /** Format: date-time */
            created: string;
            started: string | null;
            finished: string | null;
            /** @description The last one that had it. */
            worker: string | null;
            error: components["schemas"]["ForeignJobError"] | null;
        };
        ForeignJobError: {
            code: string;
        };
        FrameGap: {
            /** @description The first frame that is missing. */
            path: string;
            /** @description How many frames of the pattern are there after it. */
            after: number;
        };
        /**
         * @example {
         *       "ok": true
         *     }
         */
        Health: {
            /** @constant */
            ok: true;
        };
        /**
         * @example {
         *       "column": "temperature",
         *       "nulls": 3,
         *       "others": 0,
         *       "bins": [
         *         {
         *           "from": 4.1,
         *           "to": 12,
         *           "count": 43200
         *         },
         *         {
         *           "from": 12,
         *           "to": 19.9,
         *           "count": 43197
         *         }
         *       ]
         *     }
         */
        Histogram: {
            column: string;
            nulls: number;
            /** @description Beside `bins`: NaN and the infinities, which are in none of them. */
            others?: number;
            bins?: components["schemas"]["HistogramBin"][];
            values?: components["schemas"]["ValueCount"][];
        };
        HistogramBin: {
            from: string | number | boolean | null;
            to: string | number | boolean | null;
            count: number;
        };
        /**
         * @example {
         *       "name": "lab",
         *       "agent": true,
         *       "address": "lab.example.org",
         *       "port": 22,
         *       "keys": [
         *         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIFIqPGFQ1XV3CiF7lZEcyeUiqi2rBg4FW0f0qSsYk2r"
         *       ],
         *       "fingerprints": [
         *         "SHA256:Rj2P7rHkq0b1vS6bqVt2l3nVfX5v0wQn0oYb8m4c1dE"
         *       ],
         *       "private": false,
         *       "users": "*",
         *       "jump": "gate",
         *       "created": "2026-11-20T09:30:00.000Z"
         *     }
         */
        Host: {
            name: string;
            agent: boolean;
            jump: string | null;
            address: string;
            port: number;
            keys: string[];
            fingerprints: string[];
            private: boolean;
            users: "*" | string[];
            /** Format: date-time */
            created: string;
        };
        /**
         * @example {
         *       "users": [
         *         "ada",
         *         "grace"
         *       ]
         *     }
         */
        HostChanges: {
            address?: string;
            port?: number;
            private?: boolean;
            /** @description The public keys of the host, `ssh-ed25519 AAAA…`, and authorities that certify them, `@cert-authority *.example.org ssh-ed25519 AAAA…`. */
            keys?: string[];
            /** @constant */
            trust?: "now";
            agent?: boolean;
            users?: "*" | string[];
            jump?: string | null;
        };
        /**
         * @example {
         *       "password": "her password on the host"
         *     }
         */
        HostCredential: {
            password?: string;
            privateKey?: string;
            certificate?: string;
            passphrase?: string;
            jump?: components["schemas"]["JumpCredential"];
            /** @description The job's name, for lists. */
            name?: string;
        };
        /**
         * @example {
         *       "address": "lab.example.org"
         *     }
         */
        HostEndpoint: {
            address: string;
            /** @default 22 */
            port?: number;
            /** @default false */
            private?: boolean;
            /** @description The job's name, for lists. */
            name?: string;
        };
        /**
         * @example {
         *       "keys": [
         *         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIFIqPGFQ1XV3CiF7lZEcyeUiqi2rBg4FW0f0qSsYk2r"
         *       ],
         *       "fingerprints": [
         *         "SHA256:Rj2P7rHkq0b1vS6bqVt2l3nVfX5v0wQn0oYb8m4c1dE"
         *       ]
         *     }
         */
        HostKeys: {
            keys: string[];
            fingerprints: string[];
        };
        /**
         * @example {
         *       "name": "lab",
         *       "agent": true,
         *       "jump": "gate"
         *     }
         */
        HostName: {
            name: string;
            agent: boolean;
            jump?: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "name": "lab",
         *           "agent": true,
         *           "jump": "gate"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        HostPage: {
            items: (components["schemas"]["Host"] | components["schemas"]["HostName"])[];
            next: string | null;
        };
        /**
         * @example {
         *       "id": "01KB4T7F9A6D2E4G8H0J3K5M7P"
         *     }
         */
        Identifier: {
            id: string;
        };
        /**
         * @example {
         *       "id": "01KB4T7F9A6D2E4G8H0J3K5M7P",
         *       "kind": "command",
         *       "state": "succeeded",
         *       "label": "uname -a",
         *       "name": null,
         *       "progress": null,
         *       "message": null,
         *       "host": "lab",
         *       "session": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *       "project": null,
         *       "model": null,
         *       "upload": null,
         *       "owner": "ada",
         *       "worker": "worker-1",
         *       "requestId": "01KB4TC9E1F3G5H7J9K1M3N5P7",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "started": "2026-11-20T09:30:00.000Z",
         *       "finished": "2026-11-20T09:30:04.250Z",
         *       "result": {
         *         "returncode": 0
         *       },
         *       "error": null,
         *       "retryOf": null,
         *       "batch": null
         *     }
         */
        Job: {
            id: string;
            kind: string;
            /** @enum {string} */
            state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
            /** @description What it is, in one line. */
            label: string | null;
            /** @description The client's own. */
            name: string | null;
            progress: number | null;
            /** @description What it does, or why it waits; null once it has ended. */
            message: string | null;
            host: string | null;
            session: string | null;
            project: string | null;
            model: string | null;
            upload: string | null;
            owner: string;
            /** @description The last one that had it. */
            worker: string | null;
            /** Format: date-time */
            created: string;
            started: string | null;
            finished: string | null;
            /** @description What came of it. */
            result: components["schemas"]["JobResult"] | null;
            error: components["schemas"]["JobError"] | null;
            retryOf: string | null;
            /** @description Of the request that started it, as in the log and the audit. */
            requestId: string | null;
            batch: components["schemas"]["BatchJob"] | null;
        };
        /**
         * @example {
         *       "command": "cd study\n./simulate --steps 100",
         *       "script": null,
         *       "cwd": null,
         *       "env": [
         *         "OMP_NUM_THREADS"
         *       ],
         *       "stdin": 0,
         *       "timeout": 3600,
         *       "batch": null
         *     }
         */
        JobCommand: {
            command: string | null;
            /** @description Of a batch job that is a file of its own. */
            script: string | null;
            cwd: string | null;
            /** @description Names of its variables. Their values may be secrets. */
            env: string[];
            /** @description Bytes of its standard input. */
            stdin: number;
            /** @description Seconds. */
            timeout: number | null;
            /** @description What a batch job asked for. */
            batch: components["schemas"]["BatchResources"] | null;
        };
        JobEnd: Record<string, never>;
        /**
         * @example {
         *       "event": "end",
         *       "id": "7-0-end",
         *       "data": {}
         *     }
         */
        JobEndEvent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "end";
            /** @description Sent as Last-Event-ID, the stream goes on after it. */
            id: string;
            data: components["schemas"]["JobEnd"];
        };
        JobError: {
            code: string;
            detail: string;
            hint?: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * @description One event of a job's stream.
         * @example {
         *       "event": "output",
         *       "id": "7-0",
         *       "data": {
         *         "stream": "stdout",
         *         "offset": 0,
         *         "time": "2026-11-20T09:30:04.250Z",
         *         "text": "step 1\n"
         *       }
         *     }
         */
        JobEvent: components["schemas"]["JobStateEvent"] | components["schemas"]["JobProgressEvent"] | components["schemas"]["JobOutputEvent"] | components["schemas"]["JobEndEvent"];
        /**
         * @example {
         *       "items": [
         *         {
         *           "time": "2026-11-20T09:30:00.000Z",
         *           "event": "queued"
         *         },
         *         {
         *           "time": "2026-11-20T09:30:04.250Z",
         *           "event": "claimed",
         *           "worker": "worker-1"
         *         }
         *       ]
         *     }
         */
        JobHistory: {
            items: components["schemas"]["JobHistoryEvent"][];
        };
        /**
         * @example {
         *       "time": "2026-11-20T09:30:04.250Z",
         *       "event": "claimed",
         *       "worker": "worker-1"
         *     }
         */
        JobHistoryEvent: {
            /** Format: date-time */
            time: string;
            /**
             * @description `queued`: it was accepted; `claimed`: a worker took it; `running`: the scheduler of its host runs it; `sent`: its host was asked to run it; `lease_lost`: its worker was lost; `host_unreachable`: its host could not be reached any more; `reconnected`: its host was reached again; `cancel_requested`: somebody asked for its end; `ended`: it ended
             * @enum {string}
             */
            event: "queued" | "claimed" | "running" | "sent" | "lease_lost" | "host_unreachable" | "reconnected" | "cancel_requested" | "ended";
            /** @description That had the job then. */
            worker?: string;
        };
        JobOutput: {
            /** @enum {string} */
            stream: "stdout" | "stderr";
            /** @description Of its first byte in the stream. */
            offset: number;
            /**
             * Format: date-time
             * @description When its first byte was stored, to the second; not told of what 0.1.0 stored.
             */
            time?: string;
            text?: string;
            /** @description Instead of `text`, where the bytes are not UTF-8. */
            base64?: string;
        };
        /**
         * @example {
         *       "event": "output",
         *       "id": "7-0",
         *       "data": {
         *         "stream": "stdout",
         *         "offset": 0,
         *         "time": "2026-11-20T09:30:04.250Z",
         *         "text": "step 1\n"
         *       }
         *     }
         */
        JobOutputEvent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "output";
            /** @description Sent as Last-Event-ID, the stream goes on after it. */
            id: string;
            data: components["schemas"]["JobOutput"];
        };
        /**
         * @example {
         *       "offset": 0,
         *       "time": "2026-11-20T09:30:04.250Z"
         *     }
         */
        JobOutputTime: {
            offset: number;
            /** Format: date-time */
            time: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4T7F9A6D2E4G8H0J3K5M7P",
         *           "kind": "command",
         *           "state": "succeeded",
         *           "label": "uname -a",
         *           "name": null,
         *           "progress": null,
         *           "message": null,
         *           "host": "lab",
         *           "session": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *           "project": null,
         *           "model": null,
         *           "upload": null,
         *           "owner": "ada",
         *           "worker": "worker-1",
         *           "requestId": "01KB4TC9E1F3G5H7J9K1M3N5P7",
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "started": "2026-11-20T09:30:00.000Z",
         *           "finished": "2026-11-20T09:30:04.250Z",
         *           "result": {
         *             "returncode": 0
         *           },
         *           "error": null,
         *           "retryOf": null,
         *           "batch": null
         *         }
         *       ],
         *       "next": null
         *     }
         */
        JobPage: {
            items: (components["schemas"]["Job"] | components["schemas"]["ForeignJob"])[];
            next: string | null;
        };
        JobProgress: {
            progress: number;
            message?: string;
        };
        /**
         * @example {
         *       "event": "progress",
         *       "id": "0-0",
         *       "data": {
         *         "progress": 0.5
         *       }
         *     }
         */
        JobProgressEvent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "progress";
            /** @description Sent as Last-Event-ID, the stream goes on after it. */
            id: string;
            data: components["schemas"]["JobProgress"];
        };
        JobResult: {
            /** @description Of connect, answer. */
            challenge?: components["schemas"]["LoginQuestions"];
            /** @description Of connect, answer. */
            banner?: string;
            /** @description Of connect, answer. */
            home?: string;
            /** @description Of scan-host. */
            keys?: string[];
            /** @description Of command, batch. */
            returncode?: number;
            /**
             * @description Of video.
             * @enum {string}
             */
            type?: "video/mp4" | "video/webm";
            /** @description Of video, file. */
            bytes?: number;
            /** @description Of video. */
            stored?: number;
            /** @description Of video. */
            frames?: number;
            /**
             * @description Of video.
             * @enum {string}
             */
            encoded?: "host" | "worker";
            /** @description Of video. */
            skipped?: components["schemas"]["SkippedFrame"][];
            /** @description Of video. */
            skippedCount?: number;
            /** @description Of video. */
            gap?: components["schemas"]["FrameGap"];
            /** @description Of video. */
            uncached?: string;
            /** @description Of video. */
            tiles?: components["schemas"]["SpriteTiles"];
            /** @description Of browse. */
            entries?: number;
            /** @description Of write-file. */
            created?: boolean;
            /** @description Of copy, view. */
            size?: number;
            /** @description Of copy. */
            digest?: string;
            /** @description Of parse. */
            artifacts?: components["schemas"]["ParsedArtifact"][];
            /** @description Of parse. */
            count?: number;
            /** @description Of parse. */
            files?: components["schemas"]["SentFile"][];
            /** @description Of view. */
            rows?: number;
        } & {
            [key: string]: unknown;
        };
        JobStateChange: {
            /** @enum {string} */
            state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
            /** @description Why a job without progress waits. */
            message?: string;
            error?: components["schemas"]["JobError"];
        };
        /**
         * @example {
         *       "event": "state",
         *       "id": "0-0",
         *       "data": {
         *         "state": "running"
         *       }
         *     }
         */
        JobStateEvent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "state";
            /** @description Sent as Last-Event-ID, the stream goes on after it. */
            id: string;
            data: components["schemas"]["JobStateChange"];
        };
        /**
         * @example {
         *       "time": "2026-11-20T09:30:00.000Z",
         *       "kind": "command",
         *       "succeeded": 41,
         *       "failed": 1,
         *       "cancelled": 0,
         *       "wait": {
         *         "median": 0.05,
         *         "p95": 0.2,
         *         "longest": 0.31
         *       },
         *       "duration": {
         *         "median": 2,
         *         "p95": 20,
         *         "longest": 17.25
         *       },
         *       "waiting": 0,
         *       "running": 3
         *     }
         */
        JobStatistic: {
            /**
             * Format: date-time
             * @description Where the step begins.
             */
            time: string;
            kind: string;
            /** @description Jobs that ended so in this step. */
            succeeded: number;
            failed: number;
            cancelled: number;
            /** @description Seconds from creation to start, of the jobs that ended in this step. */
            wait: components["schemas"]["DurationSpread"] | null;
            /** @description Seconds from start to end. */
            duration: components["schemas"]["DurationSpread"] | null;
            /** @description The most that waited; null where nobody looked. */
            waiting: number | null;
            /** @description The most that ran; null where nobody looked. */
            running: number | null;
        };
        /**
         * @example {
         *       "since": "2026-11-20T09:30:00.000Z",
         *       "step": 300,
         *       "items": [
         *         {
         *           "time": "2026-11-20T09:30:00.000Z",
         *           "kind": "command",
         *           "succeeded": 41,
         *           "failed": 1,
         *           "cancelled": 0,
         *           "wait": {
         *             "median": 0.05,
         *             "p95": 0.2,
         *             "longest": 0.31
         *           },
         *           "duration": {
         *             "median": 2,
         *             "p95": 20,
         *             "longest": 17.25
         *           },
         *           "waiting": 0,
         *           "running": 3
         *         }
         *       ]
         *     }
         */
        JobStatistics: {
            /** Format: date-time */
            since: string;
            step: number;
            items: components["schemas"]["JobStatistic"][];
        };
        /**
         * @example {
         *       "username": "ada",
         *       "password": "her password on the jump host"
         *     }
         */
        JumpCredential: {
            username: string;
            password?: string;
            privateKey?: string;
            certificate?: string;
            passphrase?: string;
            jump?: components["schemas"]["JumpCredential"];
        };
        /**
         * @example {
         *       "_id": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *       "name": "Weather",
         *       "description": "",
         *       "role": "administrator",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "updated": "2026-11-20T09:30:04.250Z"
         *     }
         */
        ListedProject: {
            _id: string;
            name: string;
            description: string;
            /** @enum {string} */
            role: "administrator" | "writer" | "reader";
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            updated: string;
        };
        /**
         * @example {
         *       "name": "looking for frames"
         *     }
         */
        ListingRequest: {
            /** @description The job's name, for lists. */
            name?: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * @example {
         *       "success": true,
         *       "target": "/"
         *     }
         */
        Login: {
            /** @constant */
            success: true;
            target: string;
        };
        /**
         * @example {
         *       "challenge": "01KB4T6Q9Q1R3S5T7V9W1X3Y5Z",
         *       "answers": [
         *         "123456"
         *       ]
         *     }
         */
        LoginAnswers: {
            challenge: string;
            answers: string[];
            /** @description The job's name, for lists. */
            name?: string;
        };
        /**
         * @example {
         *       "sid": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *       "challenge": "01KB4T6Q9Q1R3S5T7V9W1X3Y5Z",
         *       "instruction": "",
         *       "prompts": [
         *         {
         *           "text": "Verification code: ",
         *           "echo": false
         *         }
         *       ],
         *       "expires": "2026-11-20T10:30:00.000Z"
         *     }
         */
        LoginChallenge: {
            sid: string;
            challenge: string;
            instruction: string;
            prompts: components["schemas"]["LoginPrompt"][];
            /** Format: date-time */
            expires: string;
        };
        LoginPrompt: {
            text: string;
            echo: boolean;
        };
        LoginQuestions: {
            challenge: string;
            instruction: string;
            prompts: components["schemas"]["LoginPrompt"][];
            /** Format: date-time */
            expires: string;
        };
        /**
         * @example {
         *       "url": "https://windlass.example/api/jobs/01KB4TC9E1F3G5H7J9K1M3N5P7/events?link=wlk_text-of-the-link",
         *       "expires": "2026-11-20T10:30:00.000Z"
         *     }
         */
        MadeLink: {
            url: string;
            /** Format: date-time */
            expires: string;
        };
        /**
         * @example {
         *       "id": "01KB4TC9E1F3G5H7J9K1M3N5P7",
         *       "token": "the text of the token, shown once"
         *     }
         */
        MadeToken: {
            id: string;
            token: string;
        };
        /**
         * @example {
         *       "id": "01KB4TC9E1F3G5H7J9K1M3N5P8",
         *       "secret": "whsec_the-key-of-the-signatures"
         *     }
         */
        MadeWebhook: {
            id: string;
            secret: string;
        };
        /**
         * @example {
         *       "type": "none",
         *       "label": "No marking"
         *     }
         */
        Marking: {
            type: string;
            label: string;
        };
        /**
         * @example [
         *       {
         *         "type": "none",
         *         "label": "No marking"
         *       }
         *     ]
         */
        Markings: components["schemas"]["Marking"][];
        Member: {
            user: string;
        };
        /**
         * @example {
         *       "id": "01KB4TA27S9T1V3W5X7Y9Z1A3B",
         *       "project": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *       "model-type": "measurements",
         *       "name": "A day",
         *       "description": "",
         *       "marking": "",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "updated": "2026-11-20T09:30:04.250Z",
         *       "artifacts": [
         *         {
         *           "aid": "day",
         *           "type": "table",
         *           "input": true,
         *           "size": 812345,
         *           "updated": "2026-11-20T09:30:04.250Z"
         *         }
         *       ],
         *       "next": null,
         *       "parses": [
         *         {
         *           "aids": [
         *             "day"
         *           ],
         *           "parser": "csv",
         *           "state": "done",
         *           "finished": "2026-11-20T09:30:04.250Z"
         *         }
         *       ]
         *     }
         */
        Model: {
            id: string;
            project: string;
            "model-type": string;
            name: string;
            description: string;
            marking: string;
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            updated: string;
            artifacts: components["schemas"]["Artifact"][];
            /** @description `after` of the next page of artifacts. */
            next: string | null;
            parses: components["schemas"]["Parse"][];
        };
        /**
         * @example {
         *       "marking": "public"
         *     }
         */
        ModelChanges: {
            name?: string;
            description?: string;
            marking?: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4TA27S9T1V3W5X7Y9Z1A3B",
         *           "project": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *           "model-type": "measurements",
         *           "name": "A day",
         *           "description": "",
         *           "marking": "",
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "updated": "2026-11-20T09:30:04.250Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        ModelPage: {
            items: components["schemas"]["ModelSummary"][];
            next: string | null;
        };
        /**
         * @example {
         *       "id": "01KB4TA27S9T1V3W5X7Y9Z1A3B",
         *       "project": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *       "model-type": "measurements",
         *       "name": "A day",
         *       "description": "",
         *       "marking": "",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "updated": "2026-11-20T09:30:04.250Z"
         *     }
         */
        ModelSummary: {
            id: string;
            project: string;
            "model-type": string;
            name: string;
            description: string;
            marking: string;
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            updated: string;
        };
        /**
         * @example {
         *       "command": "./simulate",
         *       "nodes": 2,
         *       "tasks": 64,
         *       "time": 3600,
         *       "queue": "short"
         *     }
         */
        NewBatchJob: {
            command?: string;
            script?: string;
            /** @description The job's name, for lists. */
            name?: string;
            cwd?: string;
            env?: {
                [key: string]: string;
            };
            nodes?: number;
            tasks?: number;
            cpus?: number;
            memory?: number;
            time?: number;
            queue?: string;
            account?: string;
            options?: string[];
        };
        /**
         * @example {
         *       "sid": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *       "command": "uname -a",
         *       "timeout": 60
         *     }
         */
        NewCommand: {
            sid: string;
            command: string;
            cwd?: string;
            env?: {
                [key: string]: string;
            };
            stdin?: string;
            timeout?: number;
            /** @description The job's name, for lists. */
            name?: string;
        };
        /**
         * @example {
         *       "name": "lab",
         *       "address": "lab.example.org",
         *       "keys": [
         *         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIFIqPGFQ1XV3CiF7lZEcyeUiqi2rBg4FW0f0qSsYk2r"
         *       ]
         *     }
         */
        NewHost: {
            name: string;
            address?: string;
            /** @default 22 */
            port?: number;
            /** @default false */
            private?: boolean;
            /** @description The public keys of the host, `ssh-ed25519 AAAA…`, and authorities that certify them, `@cert-authority *.example.org ssh-ed25519 AAAA…`. */
            keys?: string[];
            /** @constant */
            trust?: "now";
            /** @default true */
            agent?: boolean;
            users?: "*" | string[];
            /** @default null */
            jump?: string | null;
        };
        /**
         * @example {
         *       "path": "/api/jobs/01KB4TC9E1F3G5H7J9K1M3N5P7/events",
         *       "seconds": 3600
         *     }
         */
        NewLink: {
            /** @description Such as /api/jobs/(id)/events. */
            path: string;
            /** @default 3600 */
            seconds?: number;
        };
        /**
         * @example {
         *       "model-type": "measurements",
         *       "name": "A day"
         *     }
         */
        NewModel: {
            "model-type": string;
            name: string;
            /** @default  */
            description?: string;
            /** @default  */
            marking?: string;
        };
        /**
         * @example {
         *       "value": {
         *         "threshold": 0.5
         *       },
         *       "input": true
         *     }
         */
        NewParameter: {
            /** @description Any JSON value, `null` too. */
            value: unknown;
            /** @description Whether it is an input of the model. Absent: as before, and false at first. */
            input?: boolean;
        };
        /**
         * @example {
         *       "name": "Weather",
         *       "acl": {
         *         "writers": [
         *           {
         *             "user": "grace"
         *           }
         *         ]
         *       }
         *     }
         */
        NewProject: {
            name: string;
            /** @default  */
            description?: string;
            acl?: components["schemas"]["AccessListChanges"];
        };
        /**
         * @example {
         *       "hostname": "lab",
         *       "username": "ada",
         *       "password": "her password on the host",
         *       "env": {
         *         "LANG": "en_GB.UTF-8"
         *       }
         *     }
         */
        NewSession: {
            hostname: string;
            username: string;
            password?: string;
            privateKey?: string;
            certificate?: string;
            passphrase?: string;
            jump?: components["schemas"]["JumpCredential"];
            port?: number;
            agent?: boolean | null;
            /** @description Variables of all its commands, and of its batch jobs; a command's own come first. */
            env?: {
                [key: string]: string;
            };
            /**
             * @description When the account's start-up files are read: `once` a connection, the default with an agent, or by `each` command, as over plain ssh and always without an agent.
             * @enum {string}
             */
            startup?: "once" | "each";
            /** @description The job's name, for lists. */
            name?: string;
        };
        /**
         * @example {
         *       "name": "notebook",
         *       "scope": "write"
         *     }
         */
        NewToken: {
            name: string;
            /** @enum {string} */
            scope: "read" | "write";
            /** Format: date-time */
            expires?: string;
        };
        /**
         * @example {
         *       "mid": "01KB4TA27S9T1V3W5X7Y9Z1A3B",
         *       "input": true,
         *       "parser": "csv",
         *       "aids": [
         *         "day"
         *       ]
         *     }
         */
        NewUpload: {
            mid: string;
            input: boolean;
            /** @description See GET /configuration/parsers; its parameters stand beside it. `slycat-csv-parser` means csv, and so on. */
            parser: string;
            aids: string[];
        } & {
            [key: string]: unknown;
        };
        /**
         * @example {
         *       "username": "ada",
         *       "password": "a long password"
         *     }
         */
        NewUser: {
            username: string;
            password: string;
            /** @default false */
            administrator?: boolean;
        };
        /**
         * @example {
         *       "content-type": "video/mp4",
         *       "images": [
         *         "/home/ada/frames/001.png",
         *         "/home/ada/frames/002.png"
         *       ],
         *       "fps": 25
         *     }
         */
        NewVideo: {
            /** @description video/mp4 or video/webm; required. */
            "content-type"?: unknown;
            /** @description Absolute paths of the frames on the host, in order; required without `pattern`. */
            images?: unknown;
            /** @description Instead of `images`: an absolute path with one number, such as `%05d`, or with `*`; expanded on the host. */
            pattern?: string;
            /** @description First number of the pattern; with `*` the first position, from 0. */
            first?: number;
            /** @description Last number or position. Absent: up to the first number that is missing. */
            last?: number;
            /** @description Each so-manieth number or position; 1 unless given. */
            step?: number;
            /** @default 25 */
            fps?: number;
            /**
             * @description h264 or av1 for video/mp4, vp9 or av1 for video/webm; absent: the first of these.
             * @enum {string}
             */
            codec?: "h264" | "vp9" | "av1";
            /** @description Behind transparent pixels; black unless given. */
            background?: string;
            /**
             * @description `skip` leaves out frames that cannot be used; `fail` unless given.
             * @enum {string}
             */
            "on-bad-frame"?: "fail" | "skip";
            /**
             * @description Drawn into the upper left corner of each frame: its index in the list or the expansion, from 0, or the name of its file.
             * @enum {string}
             */
            label?: "frame" | "name";
            width?: number;
            quality?: number;
            /** @enum {string} */
            encode?: "host" | "worker";
            /** @description Project whose cache gets the video once it is ready, with `key`. */
            project?: string;
            key?: string;
            /** @description The job's name, for lists. */
            name?: string;
        };
        /**
         * @example {
         *       "url": "https://receiver.example/ends-of-jobs",
         *       "kinds": [
         *         "command"
         *       ]
         *     }
         */
        NewWebhook: {
            url: string;
            kinds?: ("connect" | "answer" | "scan-host" | "command" | "batch" | "video" | "browse" | "file" | "write-file" | "remove-file" | "copy" | "parse" | "view")[];
            states?: ("succeeded" | "failed" | "cancelled")[];
        };
        /** @description The first of these; rows count from 0. */
        OddValue: {
            row: number;
            value: string;
        };
        OddValues: {
            /**
             * @description Of nearly all values.
             * @enum {string}
             */
            type: "text" | "integer" | "number" | "boolean" | "date" | "time" | "timestamp";
            /** @description How many values are not of it. */
            others: number;
            first: components["schemas"]["OddValue"];
        };
        /**
         * @example {
         *       "openapi": "3.1.0"
         *     }
         */
        OpenApiDocument: {
            /** @constant */
            openapi: "3.1.0";
        } & {
            [key: string]: unknown;
        };
        /**
         * @example {
         *       "sid": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C"
         *     }
         */
        OpenedSession: {
            sid: string;
            banner?: string;
        };
        Parse: {
            aids: string[];
            parser: string;
            /** @enum {string} */
            state: "parsing" | "done" | "failed";
            error?: components["schemas"]["ParseError"];
            skipped?: components["schemas"]["SkippedRows"];
            /** Format: date-time */
            finished?: string;
        };
        /** @description `errors` names file, row, column and reason. */
        ParseError: {
            message: string;
            errors: unknown[];
        };
        ParsedArtifact: {
            aid: string;
            /** @enum {string} */
            kind: "file" | "table" | "array";
            size: number;
        };
        Parser: {
            name: string;
            meaning: string;
            /** @description How the names of such files end. */
            extensions: string[];
            /** @enum {string} */
            makes: "file" | "table" | "array" | "any";
            /** @description A JSON Schema. */
            parameters: {
                [key: string]: unknown;
            };
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "name": "blob",
         *           "meaning": "Keeps the file as it is.",
         *           "makes": "file",
         *           "extensions": [],
         *           "parameters": {}
         *         }
         *       ]
         *     }
         */
        ParserList: {
            items: components["schemas"]["Parser"][];
        };
        /**
         * @example {
         *       "file": "the bytes"
         *     }
         */
        PartForm: {
            /** Format: binary */
            file: string;
        };
        /**
         * @example {
         *       "type": "/api/docs#upload_incomplete",
         *       "title": "Upload incomplete.",
         *       "status": 400,
         *       "detail": "Upload incomplete: 1 part is missing.",
         *       "code": "upload_incomplete",
         *       "requestId": "4f6d1c1e-8f0b-4a53-9d57-0c7cf7a4a2c9",
         *       "missing": [
         *         [
         *           0,
         *           4
         *         ]
         *       ],
         *       "excess": []
         *     }
         */
        PartsProblem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @enum {string} */
            code: "bad_request" | "invalid_input" | "agent_required" | "shell_unusable" | "host_unsupported" | "missing_agent" | "agent_problem" | "missing_content_type" | "missing_images" | "unsupported_video_type" | "output_limit" | "time_limit" | "cwd_not_found" | "remote_disk_full" | "bad_frames" | "parse_failed" | "upload_incomplete" | "client_confused" | "digest_mismatch" | "unknown_cache_type" | "missing_project" | "missing_cache_key" | "video_failed" | "batch_unavailable" | "batch_refused" | "batch_ended" | "wrong_node" | "unauthorized" | "forbidden" | "host_not_allowed" | "account_unusable" | "remote_authentication_failed" | "not_found" | "session_not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "cancelled" | "challenge_expired" | "host_changed" | "sftp_unavailable" | "host_key_changed" | "idempotency_conflict" | "reconnect_required" | "video_not_ready" | "precondition_failed" | "payload_too_large" | "address_too_long" | "unsupported_media_type" | "range_not_satisfiable" | "locked" | "too_many_requests" | "headers_too_large" | "checksum_mismatch" | "internal" | "remote_connection_failed" | "startup_files_print" | "agent_startup_failed" | "outcome_unknown" | "worker_lost" | "unavailable" | "insufficient_storage";
            hint?: string;
            requestId: string;
            /** @description [fid, pid] of each part. */
            missing?: number[][];
            /** @description [fid, pid] of each part. */
            excess?: number[][];
            /** @constant */
            truncated?: true;
        } & {
            [key: string]: unknown;
        };
        /**
         * @description An error: RFC 9457. X-Service-Message repeats `detail`, X-Service-Hint `hint`.
         * @example {
         *       "type": "/api/docs#session_not_found",
         *       "title": "Session does not exist or has timed out.",
         *       "status": 404,
         *       "detail": "Session does not exist or has timed out.",
         *       "code": "session_not_found",
         *       "hint": "Open a session with POST /api/remotes.",
         *       "requestId": "4f6d1c1e-8f0b-4a53-9d57-0c7cf7a4a2c9"
         *     }
         */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @enum {string} */
            code: "bad_request" | "invalid_input" | "agent_required" | "shell_unusable" | "host_unsupported" | "missing_agent" | "agent_problem" | "missing_content_type" | "missing_images" | "unsupported_video_type" | "output_limit" | "time_limit" | "cwd_not_found" | "remote_disk_full" | "bad_frames" | "parse_failed" | "upload_incomplete" | "client_confused" | "digest_mismatch" | "unknown_cache_type" | "missing_project" | "missing_cache_key" | "video_failed" | "batch_unavailable" | "batch_refused" | "batch_ended" | "wrong_node" | "unauthorized" | "forbidden" | "host_not_allowed" | "account_unusable" | "remote_authentication_failed" | "not_found" | "session_not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "cancelled" | "challenge_expired" | "host_changed" | "sftp_unavailable" | "host_key_changed" | "idempotency_conflict" | "reconnect_required" | "video_not_ready" | "precondition_failed" | "payload_too_large" | "address_too_long" | "unsupported_media_type" | "range_not_satisfiable" | "locked" | "too_many_requests" | "headers_too_large" | "checksum_mismatch" | "internal" | "remote_connection_failed" | "startup_files_print" | "agent_startup_failed" | "outcome_unknown" | "worker_lost" | "unavailable" | "insufficient_storage";
            hint?: string;
            requestId: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * @example {
         *       "id": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *       "name": "Weather",
         *       "description": "",
         *       "role": "administrator",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "updated": "2026-11-20T09:30:04.250Z",
         *       "acl": {
         *         "administrators": [
         *           {
         *             "user": "ada"
         *           }
         *         ],
         *         "writers": [
         *           {
         *             "user": "grace"
         *           }
         *         ],
         *         "readers": []
         *       },
         *       "cache": {
         *         "bytes": 1234567,
         *         "limit": 0,
         *         "oldest": "2026-11-20T09:30:04.250Z"
         *       }
         *     }
         */
        Project: {
            id: string;
            name: string;
            description: string;
            /** @enum {string} */
            role: "administrator" | "writer" | "reader";
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            updated: string;
            acl: components["schemas"]["AccessList"];
            cache: components["schemas"]["CacheUse"];
        };
        /**
         * @example {
         *       "description": "What the station measured."
         *     }
         */
        ProjectChanges: {
            name?: string;
            description?: string;
            acl?: components["schemas"]["AccessListChanges"];
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4T9X4E6F8G0H2J4K6M8P0R",
         *           "name": "Weather",
         *           "description": "",
         *           "role": "administrator",
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "updated": "2026-11-20T09:30:04.250Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        ProjectPage: {
            items: components["schemas"]["ProjectSummary"][];
            next: string | null;
        };
        ProjectSummary: {
            id: string;
            name: string;
            description: string;
            /** @enum {string} */
            role: "administrator" | "writer" | "reader";
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            updated: string;
        };
        /**
         * @example {
         *       "ready": true,
         *       "checks": {
         *         "database": null,
         *         "objects": null,
         *         "queue": null,
         *         "work": null
         *       },
         *       "degraded": [],
         *       "workers": 2
         *     }
         */
        Readiness: {
            ready: boolean;
            checks: components["schemas"]["ReadinessChecks"];
            /** @description What works in part. */
            degraded: string[];
            /** @description Alive; null when the database does not say. */
            workers: number | null;
        };
        ReadinessChecks: {
            database: string | null;
            objects: string | null;
            queue: string | null;
            work: string | null;
        };
        /**
         * @example {
         *       "sid": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *       "path": "/home/ada/day.csv"
         *     }
         */
        RemoteFile: {
            sid: string;
            path: string;
        };
        /**
         * @example {
         *       "hostname": "hpc",
         *       "agent": true
         *     }
         */
        RemoteHost: {
            hostname: string;
            agent: boolean;
        };
        /**
         * @example [
         *       {
         *         "hostname": "hpc",
         *         "agent": true
         *       }
         *     ]
         */
        RemoteHosts: components["schemas"]["RemoteHost"][];
        /**
         * @example {
         *       "name": "once more"
         *     }
         */
        Repetition: {
            /** @description The job's name, for lists. */
            name?: string;
        };
        RowError: {
            file?: number;
            row?: number;
            column?: string | number;
            reason: string;
        } & {
            [key: string]: unknown;
        };
        SentFile: {
            size: number;
            parts?: components["schemas"]["SentParts"];
        };
        SentParts: {
            /** @description [bytes, parts]: so many parts of so many bytes follow one another. */
            sizes: number[][];
            /** @description SHA-256 of the parts' SHA-256s, in base64. */
            digest: string;
        };
        SeriesBuckets: {
            from: (string | number)[];
            to: (string | number)[];
            min: (string | number | null)[];
            max: (string | number | null)[];
            count: number[];
        };
        /**
         * @example {
         *       "name": "Windlass",
         *       "is": "Hauls long work off the request path.",
         *       "logins": [
         *         "password"
         *       ]
         *     }
         */
        ServiceIndex: {
            name: string;
            is: string;
            /** @description How users log in: `oidc` is GET /api/login/oidc. */
            logins: ("password" | "oidc")[];
        } & {
            [key: string]: unknown;
        };
        /**
         * @example {
         *       "sid": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *       "hostname": "lab",
         *       "username": "ada",
         *       "agent": true,
         *       "startup": "once",
         *       "env": [
         *         "LANG"
         *       ],
         *       "state": "open",
         *       "engines": [
         *         "slurm"
         *       ],
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "accessed": "2026-11-20T09:30:04.250Z",
         *       "expires": "2026-11-20T10:30:00.000Z"
         *     }
         */
        Session: {
            sid: string;
            hostname: string;
            username: string;
            agent: boolean;
            /** @enum {string} */
            startup: "once" | "each";
            /** @description The names of its variables: the first 100 at most, and 4 KiB of them. */
            env: string[];
            /** @enum {string} */
            state: "open" | "challenge" | "reconnect";
            engines: "slurm"[] | null;
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            accessed: string;
            /**
             * Format: date-time
             * @description When it ends if it is not used; later while a job is open.
             */
            expires: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "sid": "01KB4T6Q2M8Z5V7W9X3Y1N0R4C",
         *           "hostname": "lab",
         *           "username": "ada",
         *           "agent": true,
         *           "startup": "once",
         *           "env": [
         *             "LANG"
         *           ],
         *           "state": "open",
         *           "engines": [
         *             "slurm"
         *           ],
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "accessed": "2026-11-20T09:30:04.250Z",
         *           "expires": "2026-11-20T10:30:00.000Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        SessionPage: {
            items: components["schemas"]["Session"][];
            next: string | null;
        };
        /**
         * @example {
         *       "name": "PORT",
         *       "value": "8080",
         *       "from": "default",
         *       "secret": false,
         *       "meaning": "port the API listens on"
         *     }
         */
        Setting: {
            name: string;
            /** @description Null where it is a secret, or not set. */
            value: string | null;
            /** @enum {string} */
            from: "environment" | "default" | "unset";
            secret: boolean;
            meaning: string;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "name": "PORT",
         *           "value": "8080",
         *           "from": "default",
         *           "secret": false,
         *           "meaning": "port the API listens on"
         *         }
         *       ]
         *     }
         */
        SettingList: {
            items: components["schemas"]["Setting"][];
        };
        SkippedFrame: {
            /** @description From 0, in the list or in what the pattern matched. */
            index: number;
            path: string;
            reason: string;
        };
        /** @description Malformed rows that were left out, up to the "tolerance"; the first hundred are listed. */
        SkippedRows: {
            count: number;
            errors: components["schemas"]["RowError"][];
        };
        SpriteTiles: {
            count: number;
            columns: number;
            width: number;
            height: number;
            /** @description Seconds from one to the next. */
            every: number;
            /** @description Seconds of the whole video. */
            duration: number;
        };
        /**
         * @example {
         *       "sid": "01KB4T8R1B3C5D7F9G2H4J6K8N",
         *       "vsid": "01KB4T8R1B3C5D7F9G2H4J6K8N",
         *       "job": "01KB4T8R1B3C5D7F9G2H4J6K8N"
         *     }
         */
        StartedVideo: {
            sid: string;
            vsid: string;
            job: string;
        };
        Storage: {
            /** @description All that counts for this user. */
            bytes: number;
            /** @description LIMIT_USER_BYTES; 0: none. */
            limit: number;
        };
        /**
         * @example {
         *       "address": "help@example.org",
         *       "subject": "Windlass"
         *     }
         */
        SupportEmail: {
            address: string | null;
            subject: string;
        };
        /**
         * @example {
         *       "rows": 86400,
         *       "columns": [
         *         {
         *           "name": "second",
         *           "type": "integer",
         *           "min": 1,
         *           "max": 86400,
         *           "nulls": 0
         *         },
         *         {
         *           "name": "sky",
         *           "type": "text",
         *           "min": "clear",
         *           "max": "rain",
         *           "nulls": 0
         *         },
         *         {
         *           "name": "temperature",
         *           "type": "number",
         *           "min": 4.1,
         *           "max": 19.9,
         *           "nulls": 3,
         *           "unit": "°C"
         *         }
         *       ]
         *     }
         */
        Table: {
            rows: number;
            columns: components["schemas"]["Column"][];
            dialect?: components["schemas"]["CsvDialect"];
        };
        /**
         * @example {
         *       "columns": [
         *         "sky",
         *         "count",
         *         "mean:temperature"
         *       ],
         *       "rows": [
         *         [
         *           "clear",
         *           74057,
         *           12.2
         *         ],
         *         [
         *           "rain",
         *           12343,
         *           11.7
         *         ]
         *       ]
         *     }
         */
        TableGroups: {
            /** @description Those of `by`, then the aggregates as they were asked for. */
            columns: string[];
            rows: (string | number | boolean | null)[][];
        };
        /**
         * @example {
         *       "offset": 0,
         *       "total": 86400,
         *       "columns": [
         *         "second",
         *         "sky",
         *         "temperature"
         *       ],
         *       "rows": [
         *         [
         *           1,
         *           "clear",
         *           12
         *         ],
         *         [
         *           2,
         *           "clear",
         *           null
         *         ]
         *       ]
         *     }
         */
        TableRows: {
            offset: number;
            /** @description Rows of the whole table or view. */
            total: number;
            columns: string[];
            rows: (string | number | boolean | null)[][];
        };
        /**
         * @example {
         *       "x": "second",
         *       "y": "temperature",
         *       "buckets": {
         *         "from": [
         *           1,
         *           43201
         *         ],
         *         "to": [
         *           43201,
         *           86401
         *         ],
         *         "min": [
         *           4.1,
         *           12
         *         ],
         *         "max": [
         *           12,
         *           19.9
         *         ],
         *         "count": [
         *           43200,
         *           43197
         *         ]
         *       }
         *     }
         */
        TableSeries: {
            x: string;
            y: string;
            buckets: components["schemas"]["SeriesBuckets"];
        };
        Token: {
            id: string;
            name: string;
            /** @enum {string} */
            scope: "read" | "write";
            /** Format: date-time */
            created: string;
            expires: string | null;
            used: string | null;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4TC9E1F3G5H7J9K1M3N5P7",
         *           "name": "notebook",
         *           "scope": "write",
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "expires": null,
         *           "used": "2026-11-20T10:30:00.000Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        TokenPage: {
            items: components["schemas"]["Token"][];
            next: string | null;
        };
        /**
         * @example {
         *       "id": "01KB4TB6C5D7E9F1G3H5J7K9M1",
         *       "mid": "01KB4TA27S9T1V3W5X7Y9Z1A3B",
         *       "parser": "csv",
         *       "input": true,
         *       "state": "open",
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "accessed": "2026-11-20T09:30:04.250Z",
         *       "aids": [
         *         "day"
         *       ],
         *       "parts": [
         *         {
         *           "fid": 0,
         *           "pid": 0,
         *           "size": 500000,
         *           "digest": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
         *         }
         *       ]
         *     }
         */
        Upload: {
            id: string;
            mid: string;
            parser: string;
            input: boolean;
            /** @enum {string} */
            state: "open" | "parsing" | "done" | "failed";
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            accessed: string;
            job?: string;
            aids: string[];
            /** @description Parts received; `digest` is the SHA-256 in base64. */
            parts: components["schemas"]["UploadPart"][];
            error?: components["schemas"]["UploadError"];
            skipped?: components["schemas"]["SkippedRows"];
        };
        /**
         * @example {
         *       "uploaded": [
         *         5
         *       ]
         *     }
         */
        UploadEnd: {
            /** @description The number of parts of each file. */
            uploaded: number[];
            /** @description The job's name, for lists. */
            name?: string;
            /**
             * @description What a page of Slycat says beside it: projects keep no files here.
             * @constant
             */
            useProjectData?: false;
        };
        UploadError: {
            message: string;
            errors: components["schemas"]["RowError"][];
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4TB6C5D7E9F1G3H5J7K9M1",
         *           "mid": "01KB4TA27S9T1V3W5X7Y9Z1A3B",
         *           "parser": "csv",
         *           "input": true,
         *           "state": "open",
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "accessed": "2026-11-20T09:30:04.250Z"
         *         }
         *       ],
         *       "next": null
         *     }
         */
        UploadPage: {
            items: components["schemas"]["UploadSummary"][];
            next: string | null;
        };
        UploadPart: {
            fid: number;
            pid: number;
            size: number;
            digest: string;
        };
        UploadSummary: {
            id: string;
            mid: string;
            parser: string;
            input: boolean;
            /** @enum {string} */
            state: "open" | "parsing" | "done" | "failed";
            /** Format: date-time */
            created: string;
            /** Format: date-time */
            accessed: string;
            job?: string;
        };
        /**
         * @example {
         *       "username": "ada",
         *       "administrator": false,
         *       "disabled": false,
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "storage": {
         *         "bytes": 73400320,
         *         "limit": 0
         *       }
         *     }
         */
        User: {
            username: string;
            administrator: boolean;
            disabled: boolean;
            /** Format: date-time */
            created: string;
            storage: components["schemas"]["Storage"];
        };
        /**
         * @example {
         *       "password": "another long password",
         *       "current": "a long password"
         *     }
         */
        UserChanges: {
            password?: string;
            current?: string;
            administrator?: boolean;
            disabled?: boolean;
        };
        /**
         * @example {
         *       "username": "ada",
         *       "administrator": false,
         *       "disabled": false,
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "storage": {
         *         "bytes": 73400320,
         *         "limit": 0
         *       },
         *       "soleProjects": 0
         *     }
         */
        UserDetails: {
            username: string;
            administrator: boolean;
            disabled: boolean;
            /** Format: date-time */
            created: string;
            storage: components["schemas"]["Storage"];
            /** @description Projects that nobody else is in, and those that this user administers and others may only read: the removal of the user deletes the former, and leaves the latter to their readers. */
            soleProjects: number;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "username": "ada",
         *           "administrator": false,
         *           "disabled": false,
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "storage": {
         *             "bytes": 73400320,
         *             "limit": 0
         *           }
         *         }
         *       ],
         *       "next": null
         *     }
         */
        UserPage: {
            items: components["schemas"]["User"][];
            next: string | null;
        };
        ValueCount: {
            value: string | number | boolean | null;
            count: number;
            /**
             * @description The value is longer than is shown.
             * @constant
             */
            cut?: true;
        };
        /**
         * @example {
         *       "version": "0.1.0",
         *       "commit": null
         *     }
         */
        Version: {
            version: string;
            commit: string | null;
        };
        /**
         * @example {
         *       "ok": true,
         *       "ready": false,
         *       "phase": "encoding",
         *       "message": "encoding: 120 of 300 frames",
         *       "progress": 0.4
         *     }
         */
        VideoStatus: {
            ok: boolean;
            ready: boolean;
            /**
             * @description The message begins with this word.
             * @enum {string}
             */
            phase: "queued" | "checking" | "encoding" | "storing" | "ready" | "failed";
            message: string;
            progress?: number;
            /** @description For debugging. */
            returncode?: number;
            /** @description For debugging. */
            stderr?: string;
            /** @description Frames that were left out, the first hundred. */
            skipped?: components["schemas"]["SkippedFrame"][];
            /** @description How many were left out. */
            skippedCount?: number;
            /** @description Where the pattern ended, without `last`, though more frames follow. */
            gap?: components["schemas"]["FrameGap"];
            /** @description Why the cache of the project has not got it. */
            uncached?: string;
        };
        /**
         * @example {
         *       "state": "running",
         *       "progress": 0.3
         *     }
         */
        ViewProgress: {
            /** @enum {string} */
            state: "queued" | "running" | "succeeded" | "failed" | "cancelled";
            progress: number | null;
        };
        /**
         * @example {
         *       "id": "01KB4TC9E1F3G5H7J9K1M3N5P8",
         *       "url": "https://receiver.example/ends-of-jobs",
         *       "kinds": [
         *         "command"
         *       ],
         *       "states": null,
         *       "created": "2026-11-20T09:30:00.000Z",
         *       "failing": null,
         *       "problem": null,
         *       "disabled": null
         *     }
         */
        Webhook: {
            id: string;
            url: string;
            /** @description Of jobs that it is sent; null: all. */
            kinds: string[] | null;
            /** @description In which these end; null: all. */
            states: ("succeeded" | "failed" | "cancelled")[] | null;
            /** Format: date-time */
            created: string;
            /** @description Since when the receiver has taken nothing. */
            failing: string | null;
            /** @description What the last attempt failed with. */
            problem: string | null;
            /** @description Since when it is sent nothing any more. */
            disabled: string | null;
        };
        /**
         * @example {
         *       "job": "01KB4T7F9A6D2E4G8H0J3K5M7P",
         *       "state": "delivered",
         *       "created": "2026-11-20T09:30:04.250Z",
         *       "attempts": 1,
         *       "tried": "2026-11-20T09:30:04.250Z",
         *       "next": null,
         *       "status": 204,
         *       "problem": null
         *     }
         */
        WebhookDelivery: {
            job: string;
            /** @enum {string} */
            state: "pending" | "delivered" | "failed";
            /**
             * Format: date-time
             * @description When the job ended.
             */
            created: string;
            attempts: number;
            /** @description The last attempt. */
            tried: string | null;
            /** @description The next attempt. */
            next: string | null;
            /** @description Of the last answer. */
            status: number | null;
            /** @description What the last attempt failed with. */
            problem: string | null;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "job": "01KB4T7F9A6D2E4G8H0J3K5M7P",
         *           "state": "delivered",
         *           "created": "2026-11-20T09:30:04.250Z",
         *           "attempts": 1,
         *           "tried": "2026-11-20T09:30:04.250Z",
         *           "next": null,
         *           "status": 204,
         *           "problem": null
         *         }
         *       ],
         *       "next": null
         *     }
         */
        WebhookDeliveryPage: {
            items: components["schemas"]["WebhookDelivery"][];
            next: string | null;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "01KB4TC9E1F3G5H7J9K1M3N5P8",
         *           "url": "https://receiver.example/ends-of-jobs",
         *           "kinds": [
         *             "command"
         *           ],
         *           "states": null,
         *           "created": "2026-11-20T09:30:00.000Z",
         *           "failing": null,
         *           "problem": null,
         *           "disabled": null
         *         }
         *       ],
         *       "next": null
         *     }
         */
        WebhookPage: {
            items: components["schemas"]["Webhook"][];
            next: string | null;
        };
        /**
         * @example {
         *       "id": "worker-1",
         *       "host": "node-1",
         *       "kinds": [
         *         "command",
         *         "video"
         *       ],
         *       "slots": {
         *         "remote": 32,
         *         "video": 2
         *       },
         *       "running": 3,
         *       "started": "2026-11-20T09:30:00.000Z",
         *       "seen": "2026-11-20T09:30:04.250Z",
         *       "version": "0.1.0",
         *       "draining": false
         *     }
         */
        Worker: {
            id: string;
            host: string;
            /** @description Of the jobs that it does; `upkeep`: gives jobs to all workers. */
            kinds: string[];
            /** @description Jobs of each queue that it runs at once. */
            slots: {
                [key: string]: number;
            };
            /** @description Jobs that it runs. */
            running: number;
            /** Format: date-time */
            started: string;
            /** Format: date-time */
            seen: string;
            version: string | null;
            /** @description It takes no more jobs. */
            draining: boolean;
        };
        /**
         * @example {
         *       "draining": true
         *     }
         */
        WorkerChanges: {
            draining: boolean;
        };
        /**
         * @example {
         *       "items": [
         *         {
         *           "id": "worker-1",
         *           "host": "node-1",
         *           "kinds": [
         *             "command",
         *             "video"
         *           ],
         *           "slots": {
         *             "remote": 32,
         *             "video": 2
         *           },
         *           "running": 3,
         *           "started": "2026-11-20T09:30:00.000Z",
         *           "seen": "2026-11-20T09:30:04.250Z",
         *           "version": "0.1.0",
         *           "draining": false
         *         }
         *       ]
         *     }
         */
        WorkerList: {
            items: components["schemas"]["Worker"][];
        };
        /**
         * @example {
         *       "path": "/home/ada/day.csv",
         *       "size": 1694503,
         *       "digest": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
         *     }
         */
        WrittenFile: {
            path: string;
            size: number;
            /** @description SHA-256 in base64. */
            digest: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getServiceIndex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The index. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceIndex"];
                };
            };
            /** @description For browsers. */
            302: {
                headers: {
                    /** @description The console. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    showQueues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Bull Board, read-only. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": unknown;
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listAuditEntries: {
        parameters: {
            query?: {
                limit?: number;
                after?: number;
                order?: "oldest" | "newest";
                user?: string;
                action?: "login" | "logout" | "password" | "token.create" | "token.delete" | "user.create" | "user.update" | "user.promote" | "user.demote" | "user.disable" | "user.enable" | "user.delete" | "host.create" | "host.update" | "host.delete" | "session.open" | "session.close" | "command" | "file.write" | "file.remove" | "job.cancel" | "job.remove" | "link" | "webhook.create" | "webhook.delete" | "project.acl" | "project.delete" | "worker" | "restore" | "backup" | "keys.rotate" | "retention.remove";
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getBookmark: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Bookmark. */
                bid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The client's state, as it was stored. */
            200: {
                headers: {
                    /** @description Not to be kept. */
                    "Cache-Control"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookmarkState"];
                };
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeBookmark: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Bookmark. */
                bid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listMarkings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The markings. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Markings"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listParsers: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The parsers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ParserList"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listRemoteHosts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The hosts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RemoteHosts"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getSupportEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The address, and a subject. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SupportEmail"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getVersion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The release; its commit is not known. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Version"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    showDocumentation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": unknown;
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    recordEvent: {
        parameters: {
            query?: {
                /** @description Any names and values: `a=1&b=2` of `{"a": 1, "b": 2}`. */
                query?: {
                    [key: string]: string | number | boolean;
                };
            };
            header?: never;
            path: {
                /** @description Description of the user interaction: any path-like text, and a query. */
                event: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Recorded. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listHosts: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of hosts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    addHost: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewHost"];
            };
        };
        responses: {
            /** @description Added. */
            201: {
                headers: {
                    /** @description The host. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Host"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    scanHost: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostEndpoint"];
            };
        };
        responses: {
            /** @description What it shows. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostKeys"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getHost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Host. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The host. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Host"] | components["schemas"]["HostName"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    changeHost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Host. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostChanges"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Host"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeHost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Host. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listJobs: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
                state?: ("queued" | "running" | "succeeded" | "failed" | "cancelled")[];
                kind?: ("connect" | "answer" | "scan-host" | "command" | "batch" | "video" | "browse" | "file" | "write-file" | "remove-file" | "copy" | "parse" | "view")[];
                host?: string;
                session?: string;
                project?: string;
                model?: string;
                name?: string;
                label?: string;
                since?: string;
                until?: string;
                owner?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of jobs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"] | components["schemas"]["ForeignJob"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancelJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its end is asked for. */
            202: {
                headers: {
                    /** @description The job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identifier"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchJobCommand: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was asked for. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobCommand"];
                };
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    followJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description The last event that was seen; the stream goes on after it. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The stream of events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description Last-Event-ID is that of `end`: there is no more. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchJobHistory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its events, the oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobHistory"];
                };
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchJobOutput: {
        parameters: {
            query?: {
                stream?: "stdout" | "stderr";
                offset?: number;
                limit?: number;
            };
            header?: never;
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes stored so far, from the offset on. */
            200: {
                headers: {
                    /** @description `true` where no more will come after these bytes. */
                    "Output-Complete"?: string;
                    /** @description Of the first of these bytes. */
                    "Output-Offset"?: string;
                    /** @description Bytes of the stream that are stored so far. */
                    "Output-Size"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchJobOutputTimes: {
        parameters: {
            query?: {
                stream?: "stdout" | "stderr";
            };
            header?: never;
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Streamed, the oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobOutputTime"][];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed; its bytes are deleted soon. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchJobResult: {
        parameters: {
            query?: {
                download?: string;
            };
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "video/mp4": unknown;
                    "video/webm": unknown;
                };
            };
            /** @description The range. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "video/mp4": unknown;
                    "video/webm": unknown;
                };
            };
            /** @description Where the service lets its object store send videos: ask there, ranges too. */
            302: {
                headers: {
                    /** @description The address of the video, good for an hour. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    retryJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Repetition"];
            };
        };
        responses: {
            /** @description A new job, linked to the old one. */
            202: {
                headers: {
                    /** @description The new job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found; `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    makeLink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewLink"];
            };
        };
        responses: {
            /** @description Made; nothing lists it. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MadeLink"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    beginLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Or as application/x-www-form-urlencoded: The same, as a form. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Credentials"];
            };
        };
        responses: {
            /** @description Logged in. `target` is the one given where it is a path on this origin, else the home page. */
            200: {
                headers: {
                    /** @description Both cookies. */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Login"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    beginProviderLogin: {
        parameters: {
            query?: {
                target?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider. */
            302: {
                headers: {
                    /** @description Its login page. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    finishProviderLogin: {
        parameters: {
            query: {
                state: string;
                code?: string;
                iss?: string;
                error?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Logged in, to `target`. */
            302: {
                headers: {
                    /** @description The target. */
                    Location?: string;
                    /** @description Both cookies of a login. */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    endLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            204: {
                headers: {
                    /** @description Removes both cookies. */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getModel: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Model"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    changeModel: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ModelChanges"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelSummary"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteModel: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readArray: {
        parameters: {
            query?: {
                slice?: string;
            };
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The values. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArraySlice"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeArray: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchArrayFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getArray: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shape, type, least and greatest value. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArrayMetadata"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchArtifactFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeArtifactFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getParameter: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The value. */
            200: {
                headers: {
                    /** @description Its validator. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    storeParameter: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewParameter"];
            };
        };
        responses: {
            /** @description Stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeParameter: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeTable: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchTableFile: {
        parameters: {
            query?: {
                sort?: string | string[];
                filter?: string | string[];
            };
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.apache.parquet": unknown;
                };
            };
            /** @description The view is still being made; ask again. */
            202: {
                headers: {
                    /** @description The job, where it is yours. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"] | components["schemas"]["ViewProgress"];
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.apache.parquet": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    groupRows: {
        parameters: {
            query: {
                by: string | string[];
                aggregate?: string | string[];
                filter?: string | string[];
            };
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The groups. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TableGroups"];
                };
            };
            /** @description The view is still being made; ask again. */
            202: {
                headers: {
                    /** @description The job, where it is yours. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"] | components["schemas"]["ViewProgress"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    countValues: {
        parameters: {
            query: {
                column: string;
                bins?: number;
                filter?: string | string[];
            };
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The counts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Histogram"];
                };
            };
            /** @description The view is still being made; ask again. */
            202: {
                headers: {
                    /** @description The job, where it is yours. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"] | components["schemas"]["ViewProgress"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getTable: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The columns, each with its type, least and greatest value and missing values. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Table"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readRows: {
        parameters: {
            query?: {
                offset?: number;
                limit?: number;
                columns?: string | string[];
                sort?: string | string[];
                filter?: string | string[];
            };
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rows; as CSV with a line of names, a missing value as nothing at all. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TableRows"];
                    "text/csv": unknown;
                    "application/vnd.apache.arrow.stream": unknown;
                };
            };
            /** @description The view is still being made; ask again. */
            202: {
                headers: {
                    /** @description The job, where it is yours. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"] | components["schemas"]["ViewProgress"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readSeries: {
        parameters: {
            query: {
                x: string;
                y: string;
                points?: number;
                from?: string;
                to?: string;
                filter?: string | string[];
            };
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Model. */
                mid: string;
                /** @description Artifact: the name of a parameter, table or file. */
                aid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The buckets, in columns side by side. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TableSeries"];
                };
            };
            /** @description The view is still being made; ask again. */
            202: {
                headers: {
                    /** @description The job, where it is yours. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"] | components["schemas"]["ViewProgress"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getDescription: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An OpenAPI 3.1 document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenApiDocument"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listProjects: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of projects. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createProject: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewProject"];
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    /** @description The project. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identifier"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getProject: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The project. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Project"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    changeProject: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProjectChanges"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangedProject"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteProject: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Project deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listBookmarks: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of bookmarks. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookmarkPage"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    storeBookmark: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BookmarkState"];
            };
        };
        responses: {
            /** @description Stored. */
            201: {
                headers: {
                    /** @description The bookmark. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identifier"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listCache: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries, by key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CachePage"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchCacheEntry: {
        parameters: {
            query?: {
                download?: string;
            };
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Project. */
                pid: string;
                /** @description Key in a project cache; may contain slashes. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "video/mp4": unknown;
                    "video/webm": unknown;
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "video/mp4": unknown;
                    "video/webm": unknown;
                };
            };
            /** @description Where the service lets its object store send videos: ask there, ranges too. */
            302: {
                headers: {
                    /** @description The address of the video, good for an hour. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeCacheEntry: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Project. */
                pid: string;
                /** @description Key in a project cache; may contain slashes. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cache object deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listModels: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of models. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelPage"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Project. */
                pid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewModel"];
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    /** @description The model. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identifier"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listAllProjects: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The projects. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AllProjects"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    openSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSession"];
            };
        };
        responses: {
            /** @description The session is open. */
            200: {
                headers: {
                    /** @description The session. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenedSession"];
                };
            };
            /** @description The host asks for more: answer with POST /remotes/(sid)/answers before it expires. */
            202: {
                headers: {
                    /** @description The session. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginChallenge"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request; `host_unsupported`: Host unsupported.; `shell_unusable`: Shell unusable.; `missing_agent`: Missing agent configuration. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `cancelled`: Cancelled.; `host_changed`: Host changed.; `host_key_changed`: Host key changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `agent_startup_failed`: Agent startup failed.; `remote_connection_failed`: Remote connection failed.; `startup_files_print`: Start-up files print.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    launchCommand: {
        parameters: {
            query?: never;
            header?: {
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCommand"];
            };
        };
        responses: {
            /** @description The command has ended. */
            200: {
                headers: {
                    /** @description The job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Command"];
                };
            };
            /** @description It goes on as a job; or it has ended, and its output cannot be read just now. */
            202: {
                headers: {
                    /** @description The job. */
                    Location?: string;
                    /** @description The preference that was followed. */
                    "Preference-Applied"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request; `agent_problem`: Remote agent problem.; `cwd_not_found`: Folder not found.; `output_limit`: Output limit reached.; `time_limit`: Time limit reached.; `remote_disk_full`: Remote disk full.; `wrong_node`: The run is on another node.; `host_unsupported`: Host unsupported.; `shell_unusable`: Shell unusable. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `cancelled`: Cancelled. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed.; `worker_lost`: Workers were lost.; `startup_files_print`: Start-up files print.; `agent_startup_failed`: Agent startup failed.; `outcome_unknown`: Outcome unknown. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    endSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Session deleted. */
            204: {
                headers: {
                    /** @description Since when it is deprecated (RFC 9745). */
                    Deprecation?: string;
                    /** @description Its documentation. */
                    Link?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    answerLogin: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginAnswers"];
            };
        };
        responses: {
            /** @description The session is open. */
            200: {
                headers: {
                    /** @description The session. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenedSession"];
                };
            };
            /** @description The host asks for more: answer with POST /remotes/(sid)/answers before it expires. */
            202: {
                headers: {
                    /** @description The session. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginChallenge"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `host_unsupported`: Host unsupported.; `shell_unusable`: Shell unusable. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `cancelled`: Cancelled.; `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `challenge_expired`: Challenge expired. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `agent_startup_failed`: Agent startup failed.; `remote_connection_failed`: Remote connection failed.; `startup_files_print`: Start-up files print.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    submitBatchJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewBatchJob"];
            };
        };
        responses: {
            /** @description The job is started. */
            202: {
                headers: {
                    /** @description The job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `batch_unavailable`: No batch system. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `cancelled`: Cancelled. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listDirectory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Absolute path on the host; its first slash may be omitted. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ListingRequest"];
            };
        };
        responses: {
            /** @description The entries, as arrays side by side. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirectoryListing"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `time_limit`: Time limit reached.; `output_limit`: Output limit reached. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `cancelled`: Cancelled.; `sftp_unavailable`: SFTP unavailable. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Absolute path on the host; its first slash may be omitted. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description The range. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `shell_unusable`: Shell unusable.; `time_limit`: Time limit reached. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed.; `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `cancelled`: Cancelled.; `sftp_unavailable`: SFTP unavailable.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    writeFile: {
        parameters: {
            query?: {
                mode?: string;
                parents?: "true" | "false";
            };
            header?: {
                /** @description sha-256 of the body, verified (RFC 9530). */
                "Content-Digest"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Absolute path on the host; its first slash may be omitted. */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description The file was replaced. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WrittenFile"];
                };
            };
            /** @description The file is new. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WrittenFile"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `shell_unusable`: Shell unusable.; `time_limit`: Time limit reached.; `digest_mismatch`: Content digest does not match.; `remote_disk_full`: Remote disk full. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `cancelled`: Cancelled.; `sftp_unavailable`: SFTP unavailable.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Absolute path on the host; its first slash may be omitted. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `shell_unusable`: Shell unusable.; `time_limit`: Time limit reached. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `cancelled`: Cancelled.; `sftp_unavailable`: SFTP unavailable.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `remote_connection_failed`: Remote connection failed.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    repeatLogin: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostCredential"];
            };
        };
        responses: {
            /** @description The session is open. */
            200: {
                headers: {
                    /** @description The session. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenedSession"];
                };
            };
            /** @description The host asks for more: answer with POST /remotes/(sid)/answers before it expires. */
            202: {
                headers: {
                    /** @description The session. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginChallenge"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `host_unsupported`: Host unsupported.; `shell_unusable`: Shell unusable. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `remote_authentication_failed`: Remote authentication failed.; `account_unusable`: Account unusable.; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `cancelled`: Cancelled.; `host_changed`: Host changed.; `host_key_changed`: Host key changed.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error; `agent_startup_failed`: Agent startup failed.; `remote_connection_failed`: Remote connection failed.; `startup_files_print`: Start-up files print.; `worker_lost`: Workers were lost. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    makeVideo: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewVideo"];
            };
        };
        responses: {
            /** @description Started; `sid` is the id of the video session, as `vsid` is. */
            202: {
                headers: {
                    /** @description The status of the video. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StartedVideo"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `agent_required`: Agent required.; `missing_content_type`: Missing content-type.; `missing_images`: Missing images.; `unsupported_video_type`: Unsupported content-type.; `missing_project`: Must specify project id.; `missing_cache_key`: Must specify cache key. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchVideo: {
        parameters: {
            query?: {
                cache?: string;
                project?: string;
                key?: string;
                download?: string;
            };
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Video creation session. */
                vsid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole video. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "video/mp4": unknown;
                    "video/webm": unknown;
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "video/mp4": unknown;
                    "video/webm": unknown;
                };
            };
            /** @description Where the service lets its object store send videos: ask there, ranges too. */
            302: {
                headers: {
                    /** @description The address of the video, good for an hour. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `agent_required`: Agent required.; `unknown_cache_type`: Unknown cache type; `missing_project`: Must specify project id.; `missing_cache_key`: Must specify cache key. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed.; `video_not_ready`: Video is not ready.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchVideoPoster: {
        parameters: {
            query?: never;
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Video creation session. */
                vsid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The picture. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/jpeg": unknown;
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/jpeg": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `agent_required`: Agent required. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchVideoSprite: {
        parameters: {
            query?: never;
            header?: {
                /** @description One range of bytes (RFC 9110, 14.2). */
                Range?: string;
                /** @description Entity tag that the range is meant for (RFC 9110, 13.1.5). */
                "If-Range"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Video creation session. */
                vsid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The picture. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/jpeg": unknown;
                };
            };
            /** @description The range asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/jpeg": unknown;
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `agent_required`: Agent required. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable`: Range not satisfiable */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchVideoSpriteCues: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Video creation session. */
                vsid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The cues. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/vtt": unknown;
                };
            };
            /** @description `bad_request`: Bad request; `agent_required`: Agent required. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getVideoStatus: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most. */
                Prefer?: string;
            };
            path: {
                /** @description Remote session. */
                sid: string;
                /** @description Video creation session. */
                vsid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its status. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VideoStatus"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `agent_required`: Agent required. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `session_not_found`: Session does not exist or has timed out.; `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `host_changed`: Host changed. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingList"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchStatistics: {
        parameters: {
            query?: {
                since?: string;
                step?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By time and kind. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobStatistics"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    beginTusUpload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description The upload takes bytes. */
            201: {
                headers: {
                    /** @description 1.0.0 */
                    "Tus-Resumable"?: string;
                    /** @description Bytes that are stored. */
                    "Upload-Offset"?: string;
                    /** @description When the upload is given up, if nothing more comes. Absent once it is whole. */
                    "Upload-Expires"?: string;
                    /** @description The upload. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `locked`: Locked */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `checksum_mismatch`: Checksum mismatch */
            460: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    describeTus: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In headers. */
            204: {
                headers: {
                    /** @description 1.0.0 */
                    "Tus-Version"?: string;
                    /** @description creation,creation-with-upload,termination,checksum,expiration */
                    "Tus-Extension"?: string;
                    /** @description sha1,sha256 */
                    "Tus-Checksum-Algorithm"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    abandonTusUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Upload session. */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its bytes are removed. */
            204: {
                headers: {
                    /** @description 1.0.0 */
                    "Tus-Resumable"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getTusOffset: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Upload session. */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In headers. */
            200: {
                headers: {
                    /** @description 1.0.0 */
                    "Tus-Resumable"?: string;
                    /** @description Bytes that are stored. */
                    "Upload-Offset"?: string;
                    /** @description When the upload is given up, if nothing more comes. Absent once it is whole. */
                    "Upload-Expires"?: string;
                    /** @description Bytes of the whole. */
                    "Upload-Length"?: string;
                    /** @description As it was sent. */
                    "Upload-Metadata"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `locked`: Locked */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    appendTusBytes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Upload session. */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description All bytes are stored. */
            204: {
                headers: {
                    /** @description 1.0.0 */
                    "Tus-Resumable"?: string;
                    /** @description Bytes that are stored. */
                    "Upload-Offset"?: string;
                    /** @description When the upload is given up, if nothing more comes. Absent once it is whole. */
                    "Upload-Expires"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `locked`: Locked */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `checksum_mismatch`: Checksum mismatch */
            460: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listUploads: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of uploads. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    beginUpload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewUpload"];
            };
        };
        responses: {
            /** @description The upload takes parts. */
            201: {
                headers: {
                    /** @description The upload. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identifier"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Upload session. */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The upload. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upload"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    abandonUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Upload session. */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Upload session deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sendPart: {
        parameters: {
            query?: never;
            header?: {
                /** @description sha-256 of the body, verified (RFC 9530). */
                "Content-Digest"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Upload session. */
                uid: string;
                /** @description File of an upload, from 0. */
                fid: number;
                /** @description Part of a file, from 0. */
                part: number;
            };
            cookie?: never;
        };
        /** @description Or as application/x-www-form-urlencoded: The file, `file`, in base64; or, instead of it, `sid` and `path` of a remote file. */
        requestBody: {
            content: {
                "application/octet-stream": string;
                "multipart/form-data": components["schemas"]["PartForm"];
                "application/json": components["schemas"]["RemoteFile"];
            };
        };
        responses: {
            /** @description The part is stored. */
            200: {
                headers: {
                    /** @description From its SHA-256. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The remote file is being copied. */
            202: {
                headers: {
                    /** @description The job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters; `digest_mismatch`: Content digest does not match. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found; `session_not_found`: Session does not exist or has timed out. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `host_changed`: Host changed.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    finishUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key again gives the same job, for 24 hours. */
                "Idempotency-Key"?: string;
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Upload session. */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UploadEnd"];
            };
        };
        responses: {
            /** @description All is there: parsing begins. */
            202: {
                headers: {
                    /** @description The job. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedUpload"];
                };
            };
            /** @description The counts differ, or the body is not valid.; `bad_request`: Bad request; `invalid_input`: Invalid parameters; `upload_incomplete`: Upload incomplete; `client_confused`: Client confused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PartsProblem"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `idempotency_conflict`: Idempotency-Key used with another request.; `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `locked`: Locked */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listUsers: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of users. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    addUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewUser"];
            };
        };
        responses: {
            /** @description Added. */
            201: {
                headers: {
                    /** @description The user. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getCurrentUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user of these credentials. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listTokens: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tokens, without their texts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewToken"];
            };
        };
        responses: {
            /** @description Made. `token` is shown this once: `Authorization: Bearer`. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MadeToken"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteToken: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description User. */
                username: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserDetails"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    changeUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description User. */
                username: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserChanges"];
            };
        };
        responses: {
            /** @description Changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeUser: {
        parameters: {
            query?: {
                projectsTo?: string;
            };
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description User. */
                username: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listUserTokens: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path: {
                /** @description User. */
                username: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tokens, without their texts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenPage"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteUserToken: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description User. */
                username: string;
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of webhooks. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookPage"];
                };
            };
            /** @description `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description Made. `secret` is shown this once. */
            201: {
                headers: {
                    /** @description The webhook. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MadeWebhook"];
                };
            };
            /** @description `invalid_input`: Invalid parameters; `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden; `host_not_allowed`: Host not allowed. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `conflict`: Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Unchanged. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                limit?: number;
                after?: string;
            };
            header?: never;
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryPage"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listWorkers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerList"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    changeWorker: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tag of the record that the change is meant for (RFC 9110, 13.1.1). */
                "If-Match"?: string;
                /** @description Entity tags that the client has (RFC 9110, 13.1.2). */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Job, token or webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkerChanges"];
            };
        };
        responses: {
            /** @description The worker. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Worker"];
                };
            };
            /** @description `bad_request`: Bad request; `invalid_input`: Invalid parameters */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed`: Precondition failed */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: Payload too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: Unsupported media type */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    checkHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    collectMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In its text format. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": unknown;
                };
            };
            /** @description `unauthorized`: Credentials required. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`: Forbidden */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests`: Too many requests */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    checkReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ready. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description `request_timeout`: Request timeout */
            408: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `address_too_long`: Address too long */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `headers_too_large`: Header fields too large */
            431: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Internal error */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Not ready.; `unavailable`: Service unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`: Insufficient storage */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
